// A cap on bytes or reads per second, shared by all requests.
#pragma once

#include <algorithm>
#include <mutex>

#include "slowfs/clock.h"

namespace prisma::slowfs {

/// Lays the work of all requests end to end on one line of time. No burst is ever let through,
/// so the rate holds over any span, not only on average. Thread-safe.
class RateLimit {
 public:
  /// When work of this amount, asked for now, is done; now where there is no cap.
  TimePoint reserve(double amount, double per_s, TimePoint now) {
    if (per_s <= 0) return now;
    const std::lock_guard lock(mutex_);
    free_from_ = std::max(free_from_, now) + seconds(amount / per_s);
    return free_from_;
  }

 private:
  std::mutex mutex_;
  TimePoint free_from_{};
};

}  // namespace prisma::slowfs
