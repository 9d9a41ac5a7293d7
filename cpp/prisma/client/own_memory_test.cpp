#include "prisma/client/own_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace prisma {
namespace {

bool on_a_page(const OwnMemory& memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data()) % kPage == 0;
}

TEST(OwnMemory, BeginsOnAPageAndCanBeWrittenToItsEnd) {
  const auto spare = std::make_shared<SpareMemory>();
  for (const std::uint64_t bytes : {0ull, 1ull, 4096ull, 100'000ull, 3'000'000ull}) {
    for (const auto& from : {spare, std::shared_ptr<SpareMemory>()}) {
      const OwnMemory memory(from, bytes);
      EXPECT_TRUE(on_a_page(memory)) << bytes;
      std::memset(memory.data(), 1, bytes);
    }
  }
}

TEST(OwnMemory, WhatWasGivenBackIsUsedAgain) {
  const auto spare = std::make_shared<SpareMemory>();
  std::optional<OwnMemory> first(std::in_place, spare, 100'000);
  const std::byte* const where = first->data();
  first.reset();
  EXPECT_EQ(OwnMemory(spare, 50'000).data(), where);
}

TEST(OwnMemory, PiecesInUseAreNeverShared) {
  const auto spare = std::make_shared<SpareMemory>();
  OwnMemory one(spare, 1'000);
  OwnMemory other(spare, 1'000);
  EXPECT_NE(one.data(), other.data());
  one = std::move(other);  // gives nothing back twice
  EXPECT_NE(OwnMemory(spare, 1'000).data(), one.data());
}

TEST(OwnMemory, OutlivesTheClientItCameFrom) {
  auto spare = std::make_shared<SpareMemory>();
  OwnMemory memory(spare, 10'000);
  spare.reset();
  std::memset(memory.data(), 7, 10'000);
}

TEST(OwnMemory, ManyThreadsTakeAndGiveBack) {
  const auto spare = std::make_shared<SpareMemory>();
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < 500; ++i) {
        const OwnMemory memory(spare, 1 + i * 700 % 200'000);
        std::memset(memory.data(), thread, 1 + i * 700 % 200'000);
        if (memory.data()[i * 700 % 200'000] != static_cast<std::byte>(thread)) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace prisma
