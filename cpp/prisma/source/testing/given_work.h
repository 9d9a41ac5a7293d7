// Work that a test gives to a source, and what became of it. Like the engine's scheduler, it hands
// out no more reads at once than its depth, and the end of a read wakes nobody who waits for one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prisma/source/work.h"

namespace prisma::testing {

/// What became of a read.
struct Ended {
  Outcome outcome;
  std::string bytes;  // that were read
  ReadTimes times;

  int error() const {
    const auto* error = std::get_if<ErrorNumber>(&outcome);
    return error == nullptr ? 0 : error->value;
  }
  bool refused() const { return std::holds_alternative<Refused>(outcome); }
};

class GivenWork final : public Work {
 public:
  /// Called where room is asked for; says whether there is some.
  using RoomHook = std::function<bool(const Read&)>;

  std::uint64_t give(Sample sample) { return give(Read{0, std::move(sample), {}, nullptr, false}); }
  std::uint64_t give(Read read) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t ticket = read.ticket = ++last_ticket_;
    queue_.push_back(std::move(read));
    changed_.notify_one();
    return ticket;
  }

  void set_depth(std::size_t depth) {
    const std::lock_guard lock(mutex_);
    depth_ = depth;
    changed_.notify_all();
  }
  void on_room(RoomHook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
  }

  Ended ended(std::uint64_t ticket) {
    return await([&] { return ended_.contains(ticket); }, [&] { return ended_.at(ticket); });
  }
  /// The read as the engine took it over.
  Read taken_over(std::uint64_t ticket) {
    return await([&] { return taken_.contains(ticket); }, [&] { return taken_.at(ticket); });
  }
  void await_retries(int count) {
    await([&] { return retries_ >= count; }, [] { return true; });
  }
  void await_in_flight(std::size_t count) {
    await([&] { return in_flight_ == count; }, [] { return true; });
  }
  int retries() const {
    return locked([&] { return retries_; });
  }
  std::size_t in_flight() const {
    return locked([&] { return in_flight_; });
  }
  bool has_ended(std::uint64_t ticket) const {
    return locked([&] { return ended_.contains(ticket); });
  }

  std::optional<Read> next(std::stop_token stop, std::size_t reader) override {
    std::unique_lock lock(mutex_);
    const auto is_there = [&] { return !queue_.empty() && in_flight_ < depth_; };
    changed_.wait(lock, stop, [&] { return reader >= depth_ || is_there(); });
    changed_.notify_one();
    if (reader >= depth_ || !is_there()) return {};
    Read read = std::move(queue_.front());
    queue_.pop_front();
    ++in_flight_;
    seen_.notify_all();
    return read;
  }

  std::byte* room(Read& read, std::uint64_t bytes) override {
    const RoomHook hook = locked([&] { return hook_; });
    const bool there = hook == nullptr || hook(read);
    const std::lock_guard lock(mutex_);
    if (there) {
      auto& room = rooms_[read.ticket];
      room.assign(bytes, std::byte{'?'});
      return room.data();
    }
    taken_[read.ticket] = read;
    end_one();
    return nullptr;
  }

  void done(const Read& read, const Outcome& outcome, ReadTimes times) override {
    const std::lock_guard lock(mutex_);
    std::string text;
    if (const auto* bytes = std::get_if<BytesRead>(&outcome); bytes && bytes->bytes > 0) {
      text.assign(reinterpret_cast<const char*>(read.to), bytes->bytes);
    }
    if (!ended_.emplace(read.ticket, Ended{outcome, text, times}).second) std::abort();
    end_one();
  }

  void retried() override {
    const std::lock_guard lock(mutex_);
    ++retries_;
    seen_.notify_all();
  }

 private:
  void end_one() {
    --in_flight_;
    seen_.notify_all();
  }

  template <typename Get>
  auto locked(Get get) const -> decltype(get()) {
    const std::lock_guard lock(mutex_);
    return get();
  }

  template <typename Is, typename Get>
  auto await(Is is, Get get) -> decltype(get()) {
    std::unique_lock lock(mutex_);
    if (!seen_.wait_for(lock, std::chrono::seconds(30), is)) throw std::runtime_error("no end");
    return get();
  }

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable_any changed_;
  std::condition_variable seen_;
  std::deque<Read> queue_;
  std::map<std::uint64_t, std::vector<std::byte>> rooms_;
  std::map<std::uint64_t, Ended> ended_;
  std::map<std::uint64_t, Read> taken_;
  RoomHook hook_;
  std::size_t depth_ = 4;
  std::size_t in_flight_ = 0;
  std::uint64_t last_ticket_ = 0;
  int retries_ = 0;
};

}  // namespace prisma::testing
