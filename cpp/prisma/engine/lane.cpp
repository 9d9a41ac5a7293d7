#include "prisma/engine/lane.h"

#include <algorithm>

#include "prisma/buffer/layout.h"

namespace prisma {

void Lane::note_taken(std::uint64_t position) {
  if (position < frontier) {
    reordering = std::max(reordering, frontier - 1 - position);
  } else {
    frontier = position + 1;
  }
}

Lane* Lanes::find(ClientId owner, std::uint32_t plan, std::uint32_t number) {
  for (const auto& lane : lanes_) {
    if (lane->owner == owner && lane->plan == plan && lane->lane == number && !lane->cancelled) {
      return lane.get();
    }
  }
  return nullptr;
}

Lane* Lanes::find_or_add(ClientId owner, std::uint32_t plan, std::uint32_t lane,
                         std::uint64_t session) {
  if (Lane* known = find(owner, plan, lane)) return known;
  int fast_reads = 0;
  for (const auto& other : lanes_) {  // the next epoch finds the same storage
    if (other->owner == owner) fast_reads = other->fast_reads;
  }
  if (taken_numbers_.empty()) taken_numbers_.resize(kLanes);
  const auto free = std::find(taken_numbers_.begin(), taken_numbers_.end(), false);
  if (free == taken_numbers_.end()) return nullptr;
  *free = true;
  auto added = std::make_unique<Lane>();
  added->number = static_cast<std::uint32_t>(free - taken_numbers_.begin());
  added->owner = owner;
  added->plan = plan;
  added->lane = lane;
  added->session = session;
  added->fast_reads = fast_reads;
  return lanes_.emplace_back(std::move(added)).get();
}

double Lanes::due(const Lane& lane, Place place) const {
  const double ahead =
      place.position < lane.frontier ? 0.0 : static_cast<double>(place.position - lane.frontier);
  if (lane.interval_s <= 0 || mean_interval_s_ <= 0)
    return ahead * std::max(mean_interval_s_, 1e-6);
  // A lane that rests is not one that ended: its pace counts for no more than 4 times the mean.
  return ahead * std::clamp(lane.interval_s, mean_interval_s_ / 4, mean_interval_s_ * 4);
}

Lane* Lanes::most_urgent(bool only_idle) {
  Lane* best = nullptr;
  double best_due = 0;
  for (const auto& lane : lanes_) {
    if (lane->queued.empty()) continue;
    const bool is_chunk = lane->queued.begin()->first.chunk > 0;
    if (lane->aside && !is_chunk) continue;
    if (only_idle && (lane->ready > 0 || lane->reading > 0)) continue;
    const double when = due(*lane, lane->queued.begin()->first);
    if (best == nullptr || when < best_due) {
      best = lane.get();
      best_due = when;
    }
  }
  return best;
}

void Lanes::measure(double seconds) {
  double sum = 0;
  int known = 0;
  for (const auto& lane : lanes_) {
    const auto taken = static_cast<double>(lane->frontier - lane->frontier_before);
    lane->frontier_before = lane->frontier;
    if (taken > 0) {
      const double interval = seconds / taken;
      lane->interval_s = lane->interval_s > 0 ? 0.7 * lane->interval_s + 0.3 * interval : interval;
    }
    if (lane->interval_s > 0) {
      sum += lane->interval_s;
      ++known;
    }
  }
  mean_interval_s_ = known > 0 ? sum / known : 0;
}

void Lanes::remove_ended() {
  std::erase_if(lanes_, [this](const auto& lane) {
    const bool ended = lane->cancelled && lane->live == 0;
    if (ended) taken_numbers_[lane->number] = false;
    return ended;
  });
}

std::vector<Lane*> Lanes::of(ClientId owner) const {
  std::vector<Lane*> found;
  for (const auto& lane : lanes_) {
    if (lane->owner == owner) found.push_back(lane.get());
  }
  return found;
}

}  // namespace prisma
