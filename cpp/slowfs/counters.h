// What was asked of the storage, counted: the bench's witness of what a contender really did.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "slowfs/clock.h"

namespace prisma::slowfs {

enum class Kind { kOpen, kRead, kStat, kLookup, kOpendir, kReaddir };

/// How many requests are under way: now, at most, and on average while there were any to come.
class InFlight {
 public:
  void enter(TimePoint now);
  void leave(TimePoint now);
  void reset();

  std::uint64_t now() const { return now_; }
  std::uint64_t maximum() const { return maximum_; }
  double mean() const;  // weighted by time, from the first to enter to the last to leave

 private:
  void pass_time(TimePoint now);

  std::uint64_t now_ = 0;
  std::uint64_t maximum_ = 0;
  double area_ = 0;  // requests times seconds
  TimePoint first_{};
  TimePoint last_{};
};

/// Thread-safe.
class Counters {
 public:
  void enter(Kind kind);  // a request arrives
  /// It ends. The count is complete before the caller is answered.
  void leave(Kind kind, std::uint64_t bytes, bool failed);

  std::uint64_t open(std::string_view path);  // how often this path was opened before
  void reset();                               // to zero, but for what is in flight

  std::string json() const;
  std::string opens_by_path_json() const;  // paths percent-encoded

 private:
  mutable std::mutex mutex_;  // guards everything below
  std::uint64_t counts_[6] = {};
  std::uint64_t read_bytes_ = 0;
  std::uint64_t errors_ = 0;
  InFlight reads_;
  InFlight requests_;  // opens and reads
  std::unordered_map<std::string, std::uint64_t> opens_by_path_;
};

}  // namespace prisma::slowfs
