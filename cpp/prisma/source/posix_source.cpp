#include "prisma/source/posix_source.h"

#include <system_error>
#include <utility>

#include "prisma/source/one_read.h"

namespace prisma {

PosixSource::~PosixSource() {
  const std::lock_guard lock(mutex_);
  depth_ = 0;  // from here on none is started
  for (Reader& reader : readers_) reader.thread.request_stop();
}

void PosixSource::set_depth(std::size_t depth) {
  const std::lock_guard lock(mutex_);
  const Wanted wanted = readers_.empty() ? Wanted::kAsNeeded : Wanted::kAll;
  depth_ = depth;
  start_from(0, wanted);
}

/// Starts the readers that are missing: all, or those that follow a busy one.
void PosixSource::start_from(std::size_t number, Wanted wanted) {
  for (; number < depth_; ++number) {
    missing_.store(number);
    if (number == readers_.size()) readers_.emplace_back();
    Reader& reader = readers_[number];
    if (!reader.over.load(std::memory_order_acquire)) continue;
    const bool is_needed = number == 0 || readers_[number - 1].busy.load();
    if (wanted == Wanted::kAsNeeded && !is_needed)
      return;  // the one before will see who is missing
    if (!start(reader, number)) return;
  }
  missing_.store(kNone);
}

/// False, unless it is the first: the system has no thread left, and the others have to do.
bool PosixSource::start(Reader& reader, std::size_t number) {
  reader.over.store(false);
  reader.busy.store(false);
  try {
    reader.thread =
        std::jthread([this, &reader, number](std::stop_token stop) { work(stop, reader, number); });
    return true;
  } catch (const std::system_error&) {
    reader.over.store(true);
    if (number == 0) throw;
    return false;
  }
}

void PosixSource::work(std::stop_token stop, Reader& reader, std::size_t number) {
  while (auto read = work_.next(stop, number)) {
    reader.busy.store(true);
    if (missing_.load() == number + 1) {
      const std::lock_guard lock(mutex_);
      start_from(number + 1, Wanted::kAsNeeded);
    }
    perform(work_, std::move(*read), stop);
    reader.busy.store(false);
  }
  reader.over.store(true, std::memory_order_release);
}

}  // namespace prisma
