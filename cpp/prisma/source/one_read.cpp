#include "prisma/source/one_read.h"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace prisma {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

/// How often this thread has gone to sleep so far.
long sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

/// Times what is done at storage while it lives.
class AtStorage {
 public:
  AtStorage(std::int64_t& ns, bool& waited) : ns_(ns), waited_(waited) {}
  AtStorage(const AtStorage&) = delete;
  ~AtStorage() {
    ns_ += ns_since(start_);
    waited_ = waited_ || sleeps() != sleeps_;
  }

 private:
  std::int64_t& ns_;
  bool& waited_;
  const long sleeps_ = sleeps();
  const Clock::time_point start_ = Clock::now();
};

/// One read from open to end.
class Attempt {
 public:
  Attempt(Work& work, Read& read) : work_(work), read_(read) {}

  /// Nothing when the engine took the read over.
  std::optional<Outcome> run() {
    if (auto trouble = open()) return trouble;
    if (!read_.file->stamp.regular) return Refused{};
    if (read_.file->stamp.size == 0 && !read_.chunk) return read_unknown_size();
    auto outcome = read_once();
    if (outcome && changed_ && !read_.chunk) {  // once more, now with its new size
      if (auto trouble = stamp_anew()) return trouble;
      read_.to = nullptr;
      outcome = read_once();
    }
    if (outcome && changed_) return ErrorNumber{ESTALE};
    return outcome;
  }

  bool changed() const { return changed_; }
  ReadTimes times() const { return times_; }

 private:
  std::optional<Outcome> open() {
    if (read_.file) return {};
    auto file = [this] {
      const AtStorage timing(times_.open_ns, times_.waited);
      return open_file(read_.sample.path.c_str());
    }();
    if (const auto* error = std::get_if<ErrorNumber>(&file)) return *error;
    read_.file = std::make_shared<OpenFile>(std::move(std::get<OpenFile>(file)));
    return {};
  }

  /// Files of size 0 are empty, or of a kind whose size is not told (as in /proc).
  Outcome read_unknown_size() {
    std::array<std::byte, 64> some;
    const auto got = read_at(read_.file->fd, some.data(), some.size(), read_.sample.offset);
    if (const auto* error = std::get_if<ErrorNumber>(&got)) return *error;
    if (std::get<std::uint64_t>(got) > 0) return Refused{};
    return BytesRead{0};
  }

  std::optional<Outcome> read_once() {
    const Sample& sample = read_.sample;
    const std::uint64_t bytes = bytes_within(read_.file->stamp.size, sample.offset, sample.length);
    if (bytes > 0 && read_.to == nullptr) {
      read_.to = work_.room(read_, bytes);
      if (read_.to == nullptr) return {};
    }
    const auto [got, after] = [&] {
      const AtStorage timing(times_.read_ns, times_.waited);
      auto read = read_at(read_.file->fd, read_.to, bytes, sample.offset);
      return std::pair(read, stamp_of(read_.file->fd));
    }();
    if (const auto* error = std::get_if<ErrorNumber>(&got)) return *error;
    if (const auto* error = std::get_if<ErrorNumber>(&after)) return *error;
    changed_ =
        std::get<std::uint64_t>(got) < bytes || std::get<FileStamp>(after) != read_.file->stamp;
    return BytesRead{bytes};
  }

  std::optional<Outcome> stamp_anew() {
    const auto stamp = stamp_of(read_.file->fd);
    if (const auto* error = std::get_if<ErrorNumber>(&stamp)) return *error;
    read_.file->stamp = std::get<FileStamp>(stamp);
    return {};
  }

  Work& work_;
  Read& read_;
  ReadTimes times_;
  bool changed_ = false;
};

/// Waits, unless stopped first.
void pause(std::stop_token stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

void perform(Work& work, Read read, std::stop_token stop) {
  Backoff backoff;
  while (true) {
    Attempt attempt(work, read);
    const std::optional<Outcome> outcome = attempt.run();
    if (!outcome) return;
    const auto* error = std::get_if<ErrorNumber>(&*outcome);
    const bool again = error != nullptr && !attempt.changed() && is_transient(error->value);
    const auto wait = again ? backoff.next() : std::nullopt;
    if (!wait || stop.stop_requested()) {
      work.done(read, *outcome, attempt.times());
      return;
    }
    work.retried();
    pause(stop, *wait);
    if (!read.chunk) read.file.reset();  // a stale handle wants a new one
  }
}

}  // namespace prisma
