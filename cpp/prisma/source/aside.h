// What a ring cannot do well (errors that may go away, files that change or do not tell their size)
// is done aside, by threads that follow the rules for one read.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "prisma/source/posix_source.h"

namespace prisma {

class Aside {
 public:
  /// `ended` is called whenever a read has ended, by the thread that did it.
  Aside(Work& work, std::function<void()> ended)
      : reads_(work, std::move(ended)), source_(reads_) {}

  /// Does it, and ends it or has the engine take it over. Never waits. For one thread.
  void put(Read read) { source_.set_depth(reads_.put(std::move(read))); }

 private:
  class Reads final : public Work {
   public:
    Reads(Work& work, std::function<void()> ended) : work_(work), ended_(std::move(ended)) {}

    /// Returns how many there are now: as many threads are needed, since each may take its time.
    std::size_t put(Read read) {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(read));
      came_.notify_one();
      return ++count_;
    }

    std::optional<Read> next(std::stop_token stop, std::size_t) override {
      std::unique_lock lock(mutex_);
      came_.wait(lock, stop, [this] { return !waiting_.empty(); });
      if (waiting_.empty()) return {};
      Read read = std::move(waiting_.front());
      waiting_.pop_front();
      return read;
    }
    std::byte* room(Read& read, std::uint64_t bytes) override {
      std::byte* to = work_.room(read, bytes);
      if (to == nullptr) end_one();
      return to;
    }
    void done(const Read& read, const Outcome& outcome, ReadTimes times) override {
      work_.done(read, outcome, times);
      end_one();
    }
    void retried() override { work_.retried(); }

   private:
    void end_one() {
      {
        const std::lock_guard lock(mutex_);
        --count_;
      }
      ended_();
    }

    Work& work_;  // outlives this; locks for itself
    const std::function<void()> ended_;
    std::mutex mutex_;  // guards everything below
    std::condition_variable_any came_;
    std::deque<Read> waiting_;
    std::size_t count_ = 0;
  };

  Reads reads_;
  PosixSource source_;  // last: joined before what its readers use is destroyed
};

}  // namespace prisma
