#include "prisma/engine/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "prisma/base/units.h"
#include "prisma/buffer/sample_name.h"

namespace prisma {
namespace {

constexpr ClientId kClient = 1;

/// A scheduler whose reads are done, or not, by the test.
class SchedulerTest : public ::testing::Test {
 protected:
  Scheduler& with_depth(std::uint64_t depth) {
    control_ = std::make_unique<ControlLayout>();
    control_->header.data_bytes = kBytes;
    data_ = std::make_unique<std::byte[]>(kBytes);
    scheduler_ = std::make_unique<Scheduler>(
        *control_, data_.get(), [](Extent) {}, depth);
    return *scheduler_;
  }

  void announce(std::uint32_t plan, const std::vector<std::string>& paths) {
    wire::Announce message{plan, 0, wire::NamedBy::kPosition, 0, {}};
    for (const std::string& path : paths) message.samples.push_back({path});
    scheduler_->announce(kClient, 1, message);
  }

  wire::Demand demand(std::uint32_t plan, std::uint64_t position) {
    const auto found =
        find(*control_, name_by_position(control_->header.hash_key, kClient, plan, 0, position));
    change(control_->entries[found->entry], entry_client::want);
    const wire::Demand message{found->entry, found->word.generation};
    scheduler_->demand(message);
    return message;
  }

  /// What a reader that does not want to wait is given.
  std::string next(std::size_t reader) {
    std::stop_source stop;
    stop.request_stop();
    const auto read = scheduler_->next(stop.get_token(), reader);
    if (!read) return "nothing";
    last_ = *read;
    if (!last_.file) last_.file = std::make_shared<OpenFile>();
    return read->sample.path;
  }

  void finish() {
    scheduler_->room(last_, 100);
    scheduler_->done(last_, BytesRead{100}, {.open_ns = 1, .read_ns = 1, .waited = true});
  }

  static constexpr std::uint64_t kBytes = 1_MiB;
  std::unique_ptr<ControlLayout> control_;
  std::unique_ptr<std::byte[]> data_;
  std::unique_ptr<Scheduler> scheduler_;
  Read last_;
};

TEST_F(SchedulerTest, WhatIsDemandedComesBeforeWhatIsReadAhead) {
  with_depth(4);
  announce(1, {"/a", "/b", "/c"});
  EXPECT_EQ(next(0), "/a");
  demand(1, 2);
  EXPECT_EQ(next(1), "/c");
  EXPECT_EQ(next(2), "/b");
}

TEST_F(SchedulerTest, NoMoreAreReadAheadThanTheDepth) {
  with_depth(2);
  announce(1, {"/a", "/b", "/c"});
  EXPECT_EQ(next(0), "/a");
  EXPECT_EQ(next(1), "/b");
  EXPECT_EQ(next(0), "nothing");
  finish();
  EXPECT_EQ(next(1), "/c");
}

TEST_F(SchedulerTest, WhereAllReadersHangWhatIsDemandedGetsOneOfItsOwn) {
  Scheduler& scheduler = with_depth(1);
  announce(1, {"/hangs", "/hangs too"});
  EXPECT_EQ(next(0), "/hangs");
  announce(2, {"/wanted", "/after"});
  demand(2, 0);
  EXPECT_EQ(scheduler.readers(), 1u);
  scheduler.tick(0.1);
  ASSERT_EQ(scheduler.readers(), 2u);
  EXPECT_EQ(next(1), "/wanted");
  finish();
  EXPECT_EQ(next(1), "nothing") << "and is not for reading ahead";
  scheduler.tick(0.1);
  EXPECT_EQ(scheduler.readers(), 1u);
}

TEST_F(SchedulerTest, ALaneWhoseReadsDoNotWaitIsSetAsideUntilItsConsumerAsks) {
  with_depth(1);
  std::vector<std::string> paths;
  for (int i = 0; i < 200; ++i) paths.push_back("/f" + std::to_string(i));
  announce(1, paths);
  int read_ahead = 0;
  while (next(0) != "nothing") {
    ++read_ahead;
    scheduler_->room(last_, 100);
    scheduler_->done(last_, BytesRead{100}, {.open_ns = 1, .read_ns = 1, .waited = false});
  }
  EXPECT_EQ(read_ahead, 64);
  const wire::Demand wanted = demand(1, 150);
  EXPECT_EQ(next(0), "/f150") << "what is asked for is read all the same";
  finish();
  EXPECT_EQ(next(0), "nothing");
  scheduler_->resume({wanted.entry});
  EXPECT_EQ(next(0), "/f64");
}

TEST_F(SchedulerTest, WordsThatAClientWroteOverCostTheirEntriesAndNothingElse) {
  with_depth(4);
  announce(1, {"/a", "/b", "/c", "/d"});
  EXPECT_EQ(next(0), "/a");
  finish();
  for (const std::uint64_t position : {0, 1}) {
    const auto found =
        find(*control_, name_by_position(control_->header.hash_key, kClient, 1, 0, position));
    control_->entries[found->entry].word = position == 0 ? 0 : 0x5a;
  }
  scheduler_->tick(0.1);
  EXPECT_EQ(control_->header.counters.used_bytes, 0u) << "the room of the first came back";
  EXPECT_EQ(next(0), "/c");
  EXPECT_EQ(next(1), "/d");
}

TEST_F(SchedulerTest, ChunksOfALargeFileAreReadSideBySide) {
  with_depth(8);
  announce(1, {"/large"});
  EXPECT_EQ(next(0), "/large");
  EXPECT_EQ(scheduler_->room(last_, 100 * kBytes), nullptr);
  for (std::size_t reader = 0; reader < 8; ++reader) EXPECT_EQ(next(reader), "/large") << reader;
}

TEST_F(SchedulerTest, AStreamThatEndsTakesItsParkedReadsAlong) {
  with_depth(32);
  announce(1, {"/large"});
  announce(2, {"/other"});
  const auto head =
      find(*control_, name_by_position(control_->header.hash_key, kClient, 1, 0, 0))->entry;
  EXPECT_EQ(next(0), "/large");
  EXPECT_EQ(scheduler_->room(last_, 2 * kBytes), nullptr);
  std::vector<Read> chunks;
  for (std::size_t reader = 0; reader < 20; ++reader) {
    if (next(reader) == "/large") chunks.push_back(last_);
  }
  std::size_t parked = 0;
  for (Read& chunk : chunks) {
    if (scheduler_->room(chunk, kBytes / 16) == nullptr) {
      ++parked;
    } else {
      scheduler_->done(chunk, BytesRead{kBytes / 16}, {});
    }
  }
  ASSERT_GT(parked, 0u);
  // Its consumer lets go of it half-way; what looks for room finds that out.
  change(control_->entries[head], [](EntryWord now) { return entry_client::take(now, kClient); });
  change(control_->entries[head],
         [](EntryWord now) { return entry_client::give_back(now, kClient); });
  scheduler_->cancel(kClient, {2});
  scheduler_->tick(0.1);
  EXPECT_EQ(control_->header.counters.used_bytes, 0u);
  EXPECT_EQ(control_->header.counters.in_flight, 0u);
}

}  // namespace
}  // namespace prisma
