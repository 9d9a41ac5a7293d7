// Lanes as the engine sees them, and the order in which they will be consumed.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "prisma/buffer/entry_state.h"

namespace prisma {

/// Where something stands in its lane. Chunks of a stream follow its head.
struct Place {
  std::uint64_t position = 0;
  std::uint64_t chunk = 0;  // 0: the sample itself; n: chunk n - 1 of it

  auto operator<=>(const Place&) const = default;
};

/// One use of an entry.
struct EntryId {
  std::uint32_t entry = 0;
  std::uint32_t generation = 0;
};

/// The part of a plan that one consumer reads in order.
struct Lane {
  std::uint32_t number = 0;  // of its slot in shared memory
  ClientId owner = 0;
  std::uint32_t plan = 0;
  std::uint32_t lane = 0;
  std::uint64_t session = 0;

  std::map<Place, std::uint32_t> queued;  // announced and not started
  std::deque<EntryId> published;          // in the order of their places; some may be gone
  std::uint64_t frontier = 0;             // the first position after all that were consumed
  std::uint64_t reordering = 0;           // largest seen distance of a take behind the frontier
  std::uint32_t ready = 0, reading = 0, live = 0;
  bool cancelled = false;
  bool aside = false;  // clients read directly what is queued
  int fast_reads = 0;  // goes up with each read that did not wait, and down faster with others

  std::uint64_t frontier_before = 0;  // at the last tick
  double interval_s = 0;              // mean time between takes; 0: not known

  /// An entry further behind than this will not be taken any more.
  bool is_stale(std::uint64_t position) const {
    constexpr std::uint64_t kSlack = 32;
    return position + reordering + kSlack < frontier;
  }

  void note_taken(std::uint64_t position);
};

/// All lanes of all plans. Not thread-safe.
class Lanes {
 public:
  /// The lane of that plan, new if need be; nothing when there are too many.
  Lane* find_or_add(ClientId owner, std::uint32_t plan, std::uint32_t lane, std::uint64_t session);
  Lane* find(ClientId owner, std::uint32_t plan, std::uint32_t lane);

  /// When a place will be consumed, in seconds from now as far as can be told: lanes are consumed
  /// side by side, each in order. Without measurements all lanes go at one pace.
  double due(const Lane& lane, Place place) const;

  /// The lane whose first queued entry will be needed first; nothing when none has any. With
  /// `only_idle`, among lanes that have nothing ready or in flight.
  Lane* most_urgent(bool only_idle = false);

  /// Measures the pace of each lane; called at even times.
  void measure(double seconds);

  /// Forgets lanes that were cancelled and of which nothing is left.
  void remove_ended();
  std::vector<Lane*> of(ClientId owner) const;
  bool empty() const { return lanes_.empty(); }
  const std::vector<std::unique_ptr<Lane>>& all() const { return lanes_; }

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<bool> taken_numbers_;
  double mean_interval_s_ = 0;
};

}  // namespace prisma
