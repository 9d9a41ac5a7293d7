// Reads files with a thread for each read in flight.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <stop_token>
#include <thread>

#include "prisma/source/source.h"
#include "prisma/source/work.h"

namespace prisma {

class PosixSource final : public Source {
 public:
  explicit PosixSource(Work& work) : work_(work) {}

  /// More readers are started at once; fewer leave by themselves, when their read has ended and
  /// `Work::next` lets them go. A reader that was just leaving is replaced by the next call.
  void set_depth(std::size_t depth) override;

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
