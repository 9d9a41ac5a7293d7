// Reads files with a thread for each read in flight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>

#include "prisma/source/source.h"
#include "prisma/source/work.h"

namespace prisma {

/// At first there is one reader, and another is started when the last one has found something to
/// do: so the first read waits for one thread. The next call of `set_depth` starts all.
class PosixSource final : public Source {
 public:
  explicit PosixSource(Work& work) : work_(work) {}
  ~PosixSource() override;

  /// Readers that are too many leave by themselves, when their read has ended and `Work::next` lets
  /// them go. One that was just leaving is replaced by the next call.
  /// Throws std::system_error if not even one can be started.
  void set_depth(std::size_t depth) override;

 private:
  struct Reader {
    std::atomic<bool> over = true;   // not started yet, or gone
    std::atomic<bool> busy = false;  // has found something to do
    std::jthread thread;             // last: joined first
  };

  enum class Wanted { kAsNeeded, kAll };
  static constexpr std::size_t kNone = SIZE_MAX;

  void work(std::stop_token stop, Reader& reader, std::size_t number);
  void start_from(std::size_t number, Wanted wanted);
  bool start(Reader& reader, std::size_t number);

  Work& work_;                                // outlives this; locks for itself
  std::atomic<std::size_t> missing_ = kNone;  // to be started when the one before it is busy

  std::mutex mutex_;  // guards everything below
  std::size_t depth_ = 0;
  std::deque<Reader> readers_;  // last: joined before anything they use is destroyed
};

}  // namespace prisma
