// Reads files with a thread for each read in flight.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <stop_token>
#include <thread>

#include "prisma/source/work.h"

namespace prisma {

class PosixSource {
 public:
  explicit PosixSource(Work& work) : work_(work) {}

  /// Has that many readers. More are started at once; fewer leave by themselves, when their read
  /// has ended and `Work::next` lets them go. Never waits for a read. Call it now and then: a
  /// reader that was just leaving is replaced then.
  void set_depth(std::size_t depth);

 private:
  struct Reader {
    std::atomic<bool> over = false;
    std::jthread thread;  // last: joined first
  };

  void start(Reader& reader, std::size_t number);

  Work& work_;                  // outlives this; locks for itself
  std::deque<Reader> readers_;  // last: joined before anything they use is destroyed
};

}  // namespace prisma
