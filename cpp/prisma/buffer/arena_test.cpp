#include "prisma/buffer/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "prisma/base/units.h"

namespace prisma {
namespace {

constexpr std::uint64_t kCapacity = 1_MiB;

void punch_nothing(Extent) {}

TEST(Arena, RoundsUpToWholePages) {
  Arena arena(kCapacity, punch_nothing);
  EXPECT_EQ(arena.reserve(1), (Extent{0, kPage}));
  EXPECT_EQ(arena.reserve(kPage + 1), (Extent{kPage, 2 * kPage}));
  EXPECT_EQ(arena.used_bytes(), 3 * kPage);
}

TEST(Arena, GivesTheLowestRoomThatFits) {
  Arena arena(kCapacity, punch_nothing);
  const Extent small = *arena.reserve(kPage);
  const Extent wall = *arena.reserve(kPage);
  arena.give_back(small);
  EXPECT_EQ(arena.reserve(2 * kPage)->offset, wall.offset + wall.bytes);
  EXPECT_EQ(arena.reserve(kPage)->offset, small.offset);
}

TEST(Arena, ASampleOfNoBytesTakesNoRoom) {
  Arena arena(kPage, punch_nothing);
  arena.reserve(kPage);
  const auto nothing = arena.reserve(0);
  EXPECT_EQ(nothing, Extent{});
  arena.give_back(*nothing);
  EXPECT_EQ(arena.used_bytes(), kPage);
}

TEST(Arena, HasNoRoomForMoreThanThereIs) {
  Arena arena(kCapacity, punch_nothing);
  EXPECT_FALSE(arena.reserve(kCapacity + 1));
  EXPECT_FALSE(arena.reserve(UINT64_MAX));
  EXPECT_FALSE(arena.reserve(UINT64_MAX - kPage));
  EXPECT_TRUE(arena.reserve(kCapacity));
  EXPECT_FALSE(arena.reserve(1));
}

TEST(Arena, OfLessThanAPageHasNoRoom) {
  Arena arena(kPage - 1, punch_nothing);
  EXPECT_EQ(arena.capacity_bytes(), 0u);
  arena.set_budget(kPage);
  EXPECT_FALSE(arena.reserve(1));
  EXPECT_EQ(arena.free_bytes(), 0u);
}

TEST(Arena, MakesOneRoomAgainOfPiecesGivenBackInAnyOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    Arena arena(kCapacity, punch_nothing);
    std::vector<Extent> extents;
    while (const auto extent = arena.reserve(kPage * (1 + random() % 9))) {
      extents.push_back(*extent);
    }
    std::shuffle(extents.begin(), extents.end(), random);
    for (const Extent& extent : extents) arena.give_back(extent);
    EXPECT_EQ(arena.reserve(kCapacity), (Extent{0, kCapacity}));
  }
}

TEST(Arena, WithASmallerBudgetHandsOutLessAndKeepsWhatIsOut) {
  Arena arena(8 * kPage, punch_nothing);
  const Extent low = *arena.reserve(2 * kPage);
  const Extent high = *arena.reserve(6 * kPage);
  arena.set_budget(4 * kPage);
  EXPECT_EQ(arena.used_bytes(), 8 * kPage);
  EXPECT_EQ(arena.free_bytes(), 0u);
  arena.give_back(low);
  EXPECT_EQ(arena.free_bytes(), 2 * kPage);
  arena.give_back(high);
  EXPECT_EQ(arena.free_bytes(), 4 * kPage);
  EXPECT_FALSE(arena.reserve(5 * kPage));
  EXPECT_TRUE(arena.reserve(4 * kPage));
}

TEST(Arena, KeepsItsBudgetBetweenOnePageAndItsCapacity) {
  Arena arena(kCapacity, punch_nothing);
  EXPECT_EQ(arena.budget_bytes(), kCapacity);
  arena.set_budget(0);
  EXPECT_EQ(arena.budget_bytes(), kPage);
  arena.set_budget(3 * kPage - 1);
  EXPECT_EQ(arena.budget_bytes(), 2 * kPage);
  arena.set_budget(UINT64_MAX);
  EXPECT_EQ(arena.budget_bytes(), kCapacity);
}

TEST(Arena, GivesBackToTheSystemOnceWhatASmallerBudgetLeavesOver) {
  std::vector<Extent> punched;
  Arena arena(8 * kPage, [&](Extent extent) { punched.push_back(extent); });
  arena.give_back(*arena.reserve(6 * kPage));
  arena.set_budget(2 * kPage);
  arena.set_budget(3 * kPage);
  arena.set_budget(2 * kPage);
  EXPECT_EQ(punched, (std::vector{Extent{2 * kPage, 4 * kPage}}));
  EXPECT_EQ(arena.punched_bytes(), 4 * kPage);
}

TEST(Arena, GivesBackToTheSystemWhatComesFreeAboveTheBudget) {
  std::vector<Extent> punched;
  Arena arena(8 * kPage, [&](Extent extent) { punched.push_back(extent); });
  const Extent extent = *arena.reserve(6 * kPage);
  arena.set_budget(2 * kPage);
  EXPECT_TRUE(punched.empty());
  arena.give_back(extent);
  EXPECT_EQ(punched, (std::vector{Extent{2 * kPage, 4 * kPage}}));
}

/// What an arena should do, page by page, without any cleverness.
class PageByPage {
 public:
  explicit PageByPage(std::size_t pages) : budget_(pages), live_(pages), touched_(pages) {}

  void set_budget(std::size_t pages) { budget_ = pages; }

  std::optional<std::size_t> first_fit(std::size_t pages) const {
    for (std::size_t at = 0; at + pages <= budget_; ++at) {
      if (std::none_of(live_.begin() + at, live_.begin() + at + pages, [](bool l) { return l; })) {
        return at;
      }
    }
    return {};
  }

  void reserve(Extent extent) {
    for (std::size_t page : pages_of(extent)) live_[page] = touched_[page] = true;
  }

  void give_back(Extent extent) {
    for (std::size_t page : pages_of(extent)) live_[page] = false;
  }

  void punch(Extent extent) {
    for (std::size_t page : pages_of(extent)) {
      EXPECT_TRUE(touched_[page]) << "punched for nothing";
      touched_[page] = false;
      ++punched_;
    }
  }

  bool is_live(Extent extent) const {
    const auto pages = pages_of(extent);
    return std::any_of(pages.begin(), pages.end(), [&](std::size_t page) { return live_[page]; });
  }

  std::size_t used() const { return std::count(live_.begin(), live_.end(), true); }
  std::size_t free() const { return std::count(live_.begin(), live_.begin() + budget_, false); }
  std::size_t punched() const { return punched_; }
  std::size_t touched_beyond(std::size_t first) const {
    std::size_t count = 0;
    for (std::size_t page = first; page < live_.size(); ++page) {
      count += touched_[page] && !live_[page];
    }
    return count;
  }

 private:
  static std::vector<std::size_t> pages_of(Extent extent) {
    EXPECT_EQ(extent.offset % kPage, 0u);
    EXPECT_EQ(extent.bytes % kPage, 0u);
    std::vector<std::size_t> pages;
    for (std::uint64_t at = 0; at < extent.bytes; at += kPage) {
      pages.push_back((extent.offset + at) / kPage);
    }
    return pages;
  }

  std::size_t budget_;
  std::vector<bool> live_, touched_;
  std::size_t punched_ = 0;
};

class ArenaAgainstPages : public ::testing::TestWithParam<int> {
 protected:
  static constexpr std::size_t kPages = 64;

  void reserve() {
    const std::uint64_t bytes = 1 + random_() % (kPage * (random_() % 4 == 0 ? 40 : 6));
    const auto expected = pages_.first_fit(whole_pages(bytes) / kPage);
    const auto extent = arena_.reserve(bytes);
    ASSERT_EQ(extent.has_value(), expected.has_value());
    if (!extent) return;
    EXPECT_EQ(*extent, (Extent{*expected * kPage, whole_pages(bytes)}));
    pages_.reserve(*extent);
    live_.push_back(*extent);
  }

  void give_back() {
    if (live_.empty()) return;
    std::swap(live_[random_() % live_.size()], live_.back());
    const Extent extent = live_.back();
    live_.pop_back();
    pages_.give_back(extent);
    arena_.give_back(extent);
  }

  void set_budget() {
    budget_ = 1 + random_() % kPages;
    pages_.set_budget(budget_);
    arena_.set_budget(budget_ * kPage + random_() % kPage);
  }

  void check() {
    EXPECT_EQ(arena_.used_bytes(), pages_.used() * kPage);
    EXPECT_EQ(arena_.free_bytes(), pages_.free() * kPage);
    EXPECT_EQ(arena_.punched_bytes(), pages_.punched() * kPage);
    EXPECT_EQ(pages_.touched_beyond(budget_), 0u) << "kept above the budget";
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  PageByPage pages_{kPages};
  Arena arena_{kPages * kPage, [this](Extent extent) {
                 EXPECT_FALSE(pages_.is_live(extent)) << "punched under a holder";
                 pages_.punch(extent);
               }};
  std::vector<Extent> live_;
  std::size_t budget_ = kPages;
};

TEST_P(ArenaAgainstPages, DoesTheSame) {
  for (int step = 0; step < 4'000 && !HasFailure(); ++step) {
    const unsigned choice = random_() % 100;
    if (choice < 50) {
      reserve();
    } else if (choice < 90) {
      give_back();
    } else if (choice < 97) {
      set_budget();
    } else {
      arena_.punch_free();
      EXPECT_EQ(pages_.touched_beyond(0), 0u) << "free and not given back";
    }
    check();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArenaAgainstPages, ::testing::Range(0, 20));

}  // namespace
}  // namespace prisma
