// What other threads have for the thread of a ring: reads to do, files to close, word that
// something changed. They ring its bell only when it is about to sleep.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "prisma/base/fd.h"
#include "prisma/source/work.h"

namespace prisma {

/// Thread-safe.
class Inbox {
 public:
  struct Parcel {
    std::vector<Read> reads;
    std::vector<Fd> files;
    bool ended = false;  // a read, elsewhere: there may be another one to do
  };

  Inbox();

  /// Waits until one more read may be under way; false once stopped.
  bool await_place(std::stop_token stop);
  void put(Read read);
  /// Closes it in the ring, or here and now when that is no more.
  void close(Fd file);
  /// A read has ended elsewhere.
  void note_end();
  void set_limit(std::size_t reads);
  void ring();

  const Fd& bell() const { return bell_; }
  std::size_t limit() const;

  /// What there is. When there is nothing, the next to come rings the bell.
  std::optional<Parcel> take(std::size_t under_way);
  /// The bell was heard, or something else woke the thread of the ring.
  void awake();
  /// There is no more ring.
  void shut();

 private:
  void ring_if_asleep();

  Fd bell_;                   // an eventfd
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable_any place_;
  Parcel parcel_;
  std::size_t under_way_ = 0, limit_ = 0;
  bool asleep_ = false, shut_ = false;
};

}  // namespace prisma
