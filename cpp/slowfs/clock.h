// The clock that delays are measured by.
#pragma once

#include <chrono>

namespace prisma::slowfs {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

/// Seconds as people write them, exact to the nanosecond.
inline Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

inline double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace prisma::slowfs
