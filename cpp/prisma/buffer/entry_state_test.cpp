#include "prisma/buffer/entry_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace prisma {
namespace {

using enum EntryState;

constexpr EntryState kStates[] = {kFree, kQueued, kReading, kReady, kTaken, kDone};
constexpr ClientId kSelf = 7;
constexpr ClientId kOther = 8;

using Rule = NextWord (*)(EntryWord);

/// Every rule, as client kSelf or for the dead client kSelf, with the arrows that it may follow.
struct Named {
  const char* name;
  Rule rule;
  std::set<std::pair<EntryState, EntryState>> arrows;
};

const Named kRules[] = {
    {"publish", entry_engine::publish, {{kFree, kQueued}}},
    {"start", entry_engine::start, {{kQueued, kReading}}},
    {"finish", entry_engine::finish, {{kReading, kReady}}},
    {"evict", entry_engine::evict, {{kReady, kQueued}}},
    {"drop", entry_engine::drop, {{kQueued, kFree}, {kReading, kFree}, {kReady, kFree}}},
    {"reclaim", entry_engine::reclaim, {{kDone, kFree}}},
    {"reclaim_from_dead",
     [](EntryWord now) { return entry_engine::reclaim_from_dead(now, kSelf); },
     {{kTaken, kFree}}},
    {"take", [](EntryWord now) { return entry_client::take(now, kSelf); }, {{kReady, kTaken}}},
    {"want", entry_client::want, {{kQueued, kQueued}, {kReading, kReading}}},
    {"read_it_itself",
     [](EntryWord now) { return entry_client::read_it_itself(now, kSelf); },
     {{kQueued, kDone}}},
    {"pin", [](EntryWord now) { return entry_client::pin(now, kSelf); }, {{kTaken, kTaken}}},
    {"give_back",
     [](EntryWord now) { return entry_client::give_back(now, kSelf); },
     {{kTaken, kDone}}},
};

std::vector<EntryWord> all_words() {
  std::vector<EntryWord> words;
  for (const EntryState state : kStates) {
    for (int flags = 0; flags < 8; ++flags) {
      for (const ClientId client : {ClientId{0}, kSelf, kOther, ClientId{UINT16_MAX}}) {
        for (const std::uint32_t generation : {0u, 1u, 0x80000000u, UINT32_MAX}) {
          words.push_back(
              {state, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, client, generation});
        }
      }
    }
  }
  return words;
}

TEST(EntryState, AWordSurvivesPacking) {
  for (const EntryWord& word : all_words()) EXPECT_EQ(unpack(pack(word)), word);
}

TEST(EntryState, DifferentWordsArePackedDifferently) {
  std::set<std::uint64_t> packed;
  for (const EntryWord& word : all_words()) packed.insert(pack(word));
  EXPECT_EQ(packed.size(), all_words().size());
}

TEST(EntryState, TheHalfThatAFutexComparesHoldsAllButTheGeneration) {
  for (const EntryWord& word : all_words()) {
    EntryWord other = word;
    other.generation = 0;
    EXPECT_EQ(static_cast<std::uint32_t>(pack(word)), pack(other));
  }
}

TEST(EntryState, MemoryFullOfZerosIsAFreeEntry) { EXPECT_EQ(unpack(0), EntryWord{}); }

TEST(EntryState, RulesFollowTheArrowsOfThePictureAndNoOthers) {
  for (const Named& named : kRules) {
    std::set<std::pair<EntryState, EntryState>> followed;
    for (const EntryWord& word : all_words()) {
      if (const NextWord next = named.rule(word)) followed.emplace(word.state, next->state);
    }
    EXPECT_EQ(followed, named.arrows) << named.name;
  }
}

TEST(EntryState, OnlyPublishingBeginsAGeneration) {
  for (const Named& named : kRules) {
    for (const EntryWord& word : all_words()) {
      const NextWord next = named.rule(word);
      if (!next) continue;
      const bool publishes = word.state == kFree;
      EXPECT_EQ(next->generation, word.generation + (publishes ? 1 : 0)) << named.name;
    }
  }
}

TEST(EntryState, NoRuleKnowsWhatToDoWithAStateThatDoesNotExist) {
  for (int state = 6; state < 256; ++state) {
    for (const Named& named : kRules) {
      const EntryWord word{.state = static_cast<EntryState>(state), .client = kSelf};
      EXPECT_FALSE(named.rule(word)) << named.name << " " << state;
    }
  }
}

TEST(EntryState, OnlyItsHolderMayPinOrGiveBackAnEntry) {
  const EntryWord held{.state = kTaken, .client = kOther, .generation = 3};
  EXPECT_FALSE(entry_client::pin(held, kSelf));
  EXPECT_FALSE(entry_client::give_back(held, kSelf));
  EXPECT_TRUE(entry_client::pin(held, kOther));
  EXPECT_TRUE(entry_client::give_back(held, kOther));
}

TEST(EntryState, OnlyWhatTheDeadHeldIsReclaimedFromThem) {
  const EntryWord held{.state = kTaken, .client = kOther, .generation = 3};
  EXPECT_FALSE(entry_engine::reclaim_from_dead(held, kSelf));
  EXPECT_TRUE(entry_engine::reclaim_from_dead(held, kOther));
}

TEST(EntryState, AHolderIsNamedUntilItsEntryIsFree) {
  const EntryWord ready{.state = kReady, .demanded = true, .generation = 5};
  const EntryWord taken = *entry_client::take(ready, kSelf);
  EXPECT_EQ(taken, (EntryWord{.state = kTaken, .client = kSelf, .generation = 5}));
  const EntryWord done = *entry_client::give_back(taken, kSelf);
  EXPECT_EQ(done.client, kSelf);
  EXPECT_EQ(*entry_engine::reclaim(done), (EntryWord{.generation = 5}));
}

TEST(EntryState, APinOutlivesGivingBack) {
  const EntryWord held{.state = kTaken, .client = kSelf, .generation = 1};
  EXPECT_TRUE(entry_client::give_back(*entry_client::pin(held, kSelf), kSelf)->pinned);
}

TEST(EntryState, WhatSomebodyAskedForIsNotEvicted) {
  EntryWord word{.state = kQueued, .generation = 1};
  word = *entry_client::want(word);
  word = *entry_engine::finish(*entry_engine::start(word));
  EXPECT_FALSE(entry_engine::evict(word));
  EXPECT_TRUE(entry_engine::evict({.state = kReady, .generation = 1}));
}

TEST(EntryState, WhatSomebodyWaitsForIsNotReadDirectlyByAnother) {
  const EntryWord queued{.state = kQueued, .generation = 1};
  EXPECT_TRUE(entry_client::read_it_itself(queued, kSelf));
  EXPECT_FALSE(entry_client::read_it_itself(*entry_client::want(queued), kSelf));
}

TEST(EntryState, AnEntryThatIsReadyIsMarkedAsWaitedForByNobody) {
  for (const EntryWord& word : all_words()) {
    if (const NextWord next = entry_engine::finish(word)) {
      EXPECT_FALSE(next->waited);
    }
  }
}

TEST(EntryState, AFreeEntryRemembersNothingButItsGeneration) {
  for (const Named& named : kRules) {
    for (const EntryWord& word : all_words()) {
      const NextWord next = named.rule(word);
      if (next && next->state == kFree) {
        EXPECT_EQ(*next, (EntryWord{.generation = word.generation})) << named.name;
      }
    }
  }
}

}  // namespace
}  // namespace prisma
