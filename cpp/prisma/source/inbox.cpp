#include "prisma/source/inbox.h"

#include <sys/eventfd.h>

#include <utility>

#include "prisma/base/failure.h"

namespace prisma {

Inbox::Inbox() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_) throw_errno("eventfd");
}

bool Inbox::await_place(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  place_.wait(lock, stop, [this] { return under_way_ + parcel_.reads.size() < limit_; });
  return !stop.stop_requested();
}

void Inbox::put(Read read) {
  const std::lock_guard lock(mutex_);
  parcel_.reads.push_back(std::move(read));
  ring_if_asleep();
}

void Inbox::close(Fd file) {
  const std::lock_guard lock(mutex_);
  if (shut_) return;
  parcel_.files.push_back(std::move(file));
  ring_if_asleep();
}

void Inbox::note_end() {
  const std::lock_guard lock(mutex_);
  parcel_.ended = true;
  ring_if_asleep();
}

void Inbox::set_limit(std::size_t reads) {
  const std::lock_guard lock(mutex_);
  if (limit_ == reads) return;
  limit_ = reads;
  place_.notify_one();
  ring_if_asleep();
}

void Inbox::ring() { ::eventfd_write(bell_.get(), 1); }

std::size_t Inbox::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::optional<Inbox::Parcel> Inbox::take(std::size_t under_way) {
  const std::lock_guard lock(mutex_);
  const bool was_full = under_way_ + parcel_.reads.size() >= limit_;
  under_way_ = under_way + parcel_.reads.size();
  if (was_full && under_way_ < limit_) place_.notify_one();
  asleep_ = parcel_.reads.empty() && parcel_.files.empty() && !parcel_.ended;
  if (asleep_) return {};
  return std::exchange(parcel_, {});
}

void Inbox::awake() {
  const std::lock_guard lock(mutex_);
  asleep_ = false;
}

void Inbox::shut() {
  std::vector<Fd> closed;  // not under the lock
  const std::lock_guard lock(mutex_);
  shut_ = true;
  closed.swap(parcel_.files);
}

void Inbox::ring_if_asleep() {
  if (std::exchange(asleep_, false)) ring();
}

}  // namespace prisma
