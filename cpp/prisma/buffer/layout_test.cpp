#include "prisma/buffer/layout.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace prisma {
namespace {

// Between processes an atomic is no more than its bytes.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<EntryKind>::is_always_lock_free);
static_assert(std::is_standard_layout_v<ControlLayout>);
static_assert(std::is_trivially_destructible_v<ControlLayout>);
static_assert(kEntries < UINT32_MAX && kBuckets > 0);

TEST(Layout, TheFutexOfAnEntryIsTheHalfOfItsWordThatHoldsItsState) {
  Entry entry{};
  entry.word = pack({.state = EntryState::kReading, .waited = true, .generation = 0xdeadbeef});
  std::uint32_t futex = 0;
  std::memcpy(&futex, static_cast<const void*>(entry.futex()), sizeof(futex));
  EXPECT_EQ(futex, static_cast<std::uint32_t>(entry.word));
  EXPECT_EQ(static_cast<EntryState>(futex & 0xff), EntryState::kReading);
}

TEST(Layout, EntriesAndCountersShareNoCacheLine) {
  const auto control = std::make_unique<ControlLayout>();
  const auto line = [](const void* at) { return std::bit_cast<std::uintptr_t>(at) / 64; };
  EXPECT_NE(line(&control->entries[0]), line(&control->entries[1]));
  EXPECT_NE(line(&control->clients[0]), line(&control->clients[1]));
  EXPECT_NE(line(&control->lanes[0]), line(&control->lanes[1]));
  EXPECT_NE(line(&control->header.released_bytes), line(&control->header.leased_bytes));
  EXPECT_NE(line(&control->header.heartbeat), line(&control->header.released_bytes));
}

}  // namespace
}  // namespace prisma
