#include "prisma/buffer/index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace prisma {
namespace {

/// A name in the given bucket.
Hash128 name(std::uint64_t number, std::uint64_t bucket = 5) {
  return {bucket + kBuckets * number, ~number};
}

class IndexTest : public ::testing::Test {
 protected:
  Entry& entry(std::uint32_t number) { return control_->entries[number]; }

  void set_state(std::uint32_t number, EntryState state) {
    EntryWord word = unpack(entry(number).word);
    word.state = state;
    entry(number).word = pack(word);
  }

  void free(std::uint32_t number) {
    set_state(number, EntryState::kFree);
    writer_.remove(number);
  }

  std::uint32_t publish(const Hash128& it) { return *writer_.publish(it, 0); }

  /// The entry that is found, or -1.
  std::int64_t found(const Hash128& it) {
    const auto result = find(*control_, it);
    return result ? std::int64_t{result->entry} : -1;
  }

  std::unique_ptr<ControlLayout> control_ = std::make_unique<ControlLayout>();
  IndexWriter writer_{*control_};
};

TEST_F(IndexTest, FindsWhatWasPublishedUntilItIsRemoved) {
  EXPECT_EQ(found(name(1)), -1);
  const std::uint32_t number = publish(name(1));
  EXPECT_EQ(writer_.in_use(), 1u);
  const auto result = find(*control_, name(1));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->entry, number);
  EXPECT_EQ(result->word, (EntryWord{.state = EntryState::kQueued, .generation = 1}));
  EXPECT_EQ(found(name(2)), -1);
  free(number);
  EXPECT_EQ(found(name(1)), -1);
  EXPECT_EQ(writer_.in_use(), 0u);
}

TEST_F(IndexTest, KeepsTheLaneBesideTheEntry) {
  EXPECT_EQ(entry(*writer_.publish(name(1), 42)).lane, 42u);
}

TEST_F(IndexTest, TellsNamesApartThatDifferInOneHalfOnly) {
  publish({5, 1});
  EXPECT_EQ(found({5, 2}), -1);
  EXPECT_EQ(found({5 + kBuckets, 1}), -1);
}

TEST_F(IndexTest, FindsTheFirstOfEqualNamesThatNobodyHasTaken) {
  const std::uint32_t first = publish(name(1));
  publish(name(2));
  const std::uint32_t second = publish(name(1));
  const std::uint32_t third = publish(name(1));
  EXPECT_EQ(found(name(1)), first);
  for (const EntryState open : {EntryState::kQueued, EntryState::kReading, EntryState::kReady}) {
    set_state(first, open);
    EXPECT_EQ(found(name(1)), first);
  }
  for (const EntryState over : {EntryState::kTaken, EntryState::kDone, EntryState::kFree}) {
    set_state(first, over);
    EXPECT_EQ(found(name(1)), second);
  }
  set_state(second, EntryState::kTaken);
  EXPECT_EQ(found(name(1)), third);
  set_state(third, EntryState::kTaken);
  EXPECT_EQ(found(name(1)), -1);
}

TEST_F(IndexTest, AnEntryThatIsUsedAgainComesLastAndInANewGeneration) {
  const std::uint32_t first = publish(name(1));
  const std::uint32_t second = publish(name(1));
  free(first);
  EXPECT_EQ(publish(name(1)), first);
  EXPECT_EQ(unpack(entry(first).word).generation, 2u);
  EXPECT_EQ(entry(second).next, first + 1);
  EXPECT_EQ(entry(first).next, 0u);
  EXPECT_EQ(found(name(1)), second);
}

TEST_F(IndexTest, HandsOutAllEntriesAndThenNone) {
  for (std::uint32_t i = 0; i < kEntries; ++i) ASSERT_TRUE(writer_.publish(name(i, i), 0));
  EXPECT_FALSE(writer_.publish(name(1), 0));
  EXPECT_EQ(writer_.in_use(), kEntries);
  free(1234);
  EXPECT_EQ(publish(name(7)), 1234u);
  EXPECT_EQ(found(name(7)), 1234);
}

TEST_F(IndexTest, DoesTheSameAsAListOfNamesThatIsSearchedFromTheFront) {
  std::mt19937 random(3);
  std::map<Hash128, std::deque<std::uint32_t>> expected;
  std::vector<std::pair<Hash128, std::uint32_t>> live;
  for (int step = 0; step < 20'000; ++step) {
    const Hash128 it = name(random() % 5, random() % 3);
    if (live.size() < 40 && random() % 2 == 0) {
      const std::uint32_t number = publish(it);
      expected[it].push_back(number);
      live.emplace_back(it, number);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      const auto [gone, number] = live.back();
      live.pop_back();
      std::erase(expected[gone], number);
      free(number);
    }
    ASSERT_EQ(found(it), expected[it].empty() ? std::int64_t{-1} : expected[it].front());
    ASSERT_EQ(writer_.in_use(), live.size());
  }
}

TEST_F(IndexTest, FindsWhatIsThereAndNoMoreWhereAnEngineDiedInTheMiddleOfAChange) {
  const std::uint32_t number = publish(name(1));
  ++control_->buckets[5].version;
  EXPECT_EQ(found(name(1)), number);
  EXPECT_EQ(found(name(2)), -1);
}

TEST_F(IndexTest, FindsAnEndInAChainThatBitesItsTail) {
  const std::uint32_t first = publish(name(1));
  const std::uint32_t second = publish(name(2));
  entry(second).next = first + 1;
  EXPECT_EQ(found(name(3)), -1);
  entry(second).next = UINT32_MAX;
  EXPECT_EQ(found(name(3)), -1);
}

TEST_F(IndexTest, TheWriterTrustsNoLinkAndNoStateInSharedMemory) {
  const std::uint32_t first = publish(name(1));
  const std::uint32_t second = publish(name(2));
  const std::uint32_t third = publish(name(3));
  for (const std::uint32_t number : {first, second, third}) {
    entry(number).next = 77;
    entry(number).word = UINT64_MAX;
    entry(number).name[0] = 0;
  }
  control_->buckets[5].head = UINT32_MAX;
  for (const std::uint32_t number : {second, first, third}) writer_.remove(number);
  EXPECT_EQ(writer_.in_use(), 0u);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const std::uint32_t number = publish(name(i));
    EXPECT_EQ(found(name(i)), number);
    EXPECT_EQ(unpack(entry(number).word).state, EntryState::kQueued);
  }
}

TEST_F(IndexTest, ChangeAppliesAStepOrLeavesTheWordAlone) {
  const std::uint32_t number = publish(name(1));
  const auto before = change(entry(number), entry_engine::start);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->state, EntryState::kQueued);
  EXPECT_EQ(unpack(entry(number).word).state, EntryState::kReading);
  EXPECT_FALSE(change(entry(number), entry_engine::start));
  EXPECT_EQ(unpack(entry(number).word).state, EntryState::kReading);
}

TEST_F(IndexTest, OneOfManyTakesAnEntry) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t number = publish(name(1));
    set_state(number, EntryState::kReady);
    std::atomic<int> takers = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          const auto self = static_cast<ClientId>(i + 1);
          const auto take = [=](EntryWord now) { return entry_client::take(now, self); };
          if (change(entry(number), take)) ++takers;
        });
      }
    }
    EXPECT_EQ(takers, 1);
    free(number);
  }
}

// One thread publishes, fills, drops and frees entries with few names in one bucket, others find
// and take them. What a holder sees beside the word must be of the sample that it wanted.
class IndexUnderReaders : public IndexTest {
 protected:
  static constexpr int kNames = 3;
  static constexpr int kRounds = 4'000;

  static std::uint64_t content(std::uint64_t of, std::uint32_t generation) {
    return of << 40 | generation;
  }

  void read(ClientId self) {
    std::mt19937 random(self);
    while (!over_) {
      const std::uint64_t wanted = random() % kNames;
      const auto result = find(*control_, name(wanted));
      if (!result || result->word.state != EntryState::kReady) continue;
      Entry& it = entry(result->entry);
      std::uint64_t seen = pack(result->word);
      const EntryWord taken = *entry_client::take(result->word, self);
      if (!it.word.compare_exchange_strong(seen, pack(taken))) continue;
      ++taken_;
      if (bytes_[result->entry] != content(wanted, taken.generation)) ++wrong_;
      change(it, [=](EntryWord now) { return entry_client::give_back(now, self); });
    }
  }

  void step(std::mt19937& random) {
    if (live_.size() < 6) {
      const std::uint64_t of = random() % kNames;
      live_.emplace_back(of, publish(name(of)));
    }
    std::swap(live_[random() % live_.size()], live_.back());
    const auto [of, number] = live_.back();
    Entry& it = entry(number);
    if (change(it, entry_engine::start)) {
      bytes_[number] = content(of, unpack(it.word).generation);  // plain: the protocol guards it
      change(it, entry_engine::finish);
    } else if (change(it, entry_engine::reclaim) ||
               (random() % 4 == 0 && change(it, entry_engine::drop))) {
      live_.pop_back();
      writer_.remove(number);
    }
  }

  std::vector<std::uint64_t> bytes_ = std::vector<std::uint64_t>(kEntries);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> live_;
  std::atomic<bool> over_ = false;
  std::atomic<int> taken_ = 0, wrong_ = 0;
};

TEST_F(IndexUnderReaders, NobodyEverTakesAnotherSample) {
  std::vector<std::jthread> readers;
  for (ClientId self = 1; self <= 3; ++self) readers.emplace_back([this, self] { read(self); });
  std::mt19937 random(1);
  for (int round = 0; round < kRounds || taken_ < 100; ++round) {
    step(random);
    if (round % 16 == 0) std::this_thread::yield();
  }
  over_ = true;
  readers.clear();
  EXPECT_GE(taken_, 100);
  EXPECT_EQ(wrong_, 0);
}

TEST_F(IndexUnderReaders, WhatIsAlwaysThereIsAlwaysFoundHoweverItsChainChanges) {
  std::uint32_t current = publish(name(100));
  std::atomic<int> missed = 0, looked = 0;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!over_) {
        if (found(name(100)) == -1) ++missed;
        ++looked;
      }
    });
  }
  std::mt19937 random(2);
  for (int round = 0; round < kRounds || looked < 100; ++round) {
    step(random);
    // Its next copy comes last in the chain, so that others come and go in front of it.
    free(std::exchange(current, publish(name(100))));
    if (round % 16 == 0) std::this_thread::yield();
  }
  over_ = true;
  readers.clear();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace prisma
