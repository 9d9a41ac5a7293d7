#include "prisma/source/uring_driver.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "prisma/base/units.h"

namespace prisma {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBell = 0, kClosed = 1, kFirstFlight = 2;         // what a completion is of
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;  // as open_file's

/// Opens what can be opened without waiting for storage. A failure is a negative error number.
int open_at_once(const char* path) {
  open_how how{};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_CACHED;
  const auto fd = ::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

/// What the kernel has in memory of a file, without asking storage.
struct statx status_at_once(const Fd& fd) {
  struct statx status {};
  ::statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status);
  return status;
}

/// Whether it lies on a disk of this machine. What comes over a network or from another process has
/// no device of its own (nor has memory, where asking once more does no harm).
bool is_local(const struct statx& status) { return status.stx_dev_major != 0; }

FileStamp stamp_from(const struct statx& status) {
  const auto changed_ns = static_cast<std::uint64_t>(status.stx_mtime.tv_sec) * 1'000'000'000 +
                          status.stx_mtime.tv_nsec;
  return {status.stx_size, static_cast<std::int64_t>(changed_ns), status.stx_ino,
          S_ISREG(status.stx_mode)};
}

/// An open file that is closed in the ring where closing may wait, as it does on FUSE.
std::shared_ptr<OpenFile> shared(OpenFile file, bool local, std::shared_ptr<Inbox> inbox) {
  if (local) return std::make_shared<OpenFile>(std::move(file));
  return {new OpenFile(std::move(file)), [inbox = std::move(inbox)](OpenFile* gone) {
            inbox->close(std::move(gone->fd));
            delete gone;
          }};
}

}  // namespace

void UringDriver::run(std::stop_token stop) {
  last_id_ = kFirstFlight;
  ring_.enable();
  ring_.await_input(kBell, inbox_->bell());
  while (true) {
    const bool stopped = stop.stop_requested();  // nothing comes in after that: see to it before
    while (auto parcel = inbox_->take(flights_.size())) obey(std::move(*parcel));
    if (stopped && flights_.empty() && closing_ == 0) break;
    if (more_ && !stopped) ask_for_more();
    if (more_ && !stopped) {
      ring_.submit();
    } else {
      ring_.submit_and_wait();
    }
    inbox_->awake();
    take_completions();
  }
  inbox_->shut();
}

void UringDriver::obey(Inbox::Parcel parcel) {
  for (Read& read : parcel.reads) begin(std::move(read));
  for (Fd& file : parcel.files) {
    ring_.close(kClosed, std::move(file));
    ++closing_;
  }
  more_ = more_ || parcel.ended;
}

void UringDriver::take_completions() {
  while (const auto completion = ring_.take()) {
    if (completion->id == kBell) {
      eventfd_t rung = 0;
      ::eventfd_read(inbox_->bell().get(), &rung);
      ring_.await_input(kBell, inbox_->bell());
    } else if (completion->id == kClosed) {
      --closing_;
    } else {
      go_on(flights_.at(completion->id), completion->result);
    }
  }
}

/// Without waiting. Not too many in one go, lest completions have to wait.
void UringDriver::ask_for_more() {
  constexpr int kAtOnce = 16;
  std::stop_source now;
  now.request_stop();
  for (int count = 0; count < kAtOnce && flights_.size() < inbox_->limit(); ++count) {
    auto read = work_.next(now.get_token(), 0);
    if (!read) {
      more_ = false;
      return;
    }
    begin(std::move(*read));
  }
  more_ = more_ && flights_.size() < inbox_->limit();
}

void UringDriver::begin(Read read) {
  Flight& flight = flights_[++last_id_];
  flight.id = last_id_;
  flight.read = std::move(read);
  flight.since = Clock::now();
  if (const std::size_t limit = inbox_->limit(); limit != workers_) {
    ring_.set_workers(static_cast<unsigned>(limit));
    workers_ = limit;
  }
  if (!flight.read.file) return open(flight);
  flight.local = is_local(status_at_once(flight.read.file->fd));
  find_room(flight);
}

void UringDriver::go_on(Flight& flight, std::int32_t result) {
  time_step(flight);
  if (result < 0) return failed(flight, -result);
  switch (flight.step) {
    case Step::kOpen:
      return opened(flight, result);
    case Step::kFirstStamp:
      return stamped(flight);
    case Step::kRead:
      return got(flight, static_cast<std::uint64_t>(result));
    case Step::kLastStamp:
      return checked(flight, stamp_from(flight.status));
  }
}

void UringDriver::open(Flight& flight) {
  if (opens_at_once_) {
    const int fd = open_at_once(flight.read.sample.path.c_str());
    if (fd >= 0) {
      time_step(flight);
      return opened(flight, fd);
    }
    if (fd != -EAGAIN && fd != -ENOSYS && fd != -EPERM) return failed(flight, -fd);
    flight.times.waited = true;
  }
  ring_.open(flight.id, flight.read.sample.path.c_str(), kOpenFlags);
}

void UringDriver::opened(Flight& flight, int fd) {
  flight.fd = Fd(fd);
  flight.status = status_at_once(flight.fd);
  flight.local = opens_at_once_ = is_local(flight.status);
  if (flight.local) return stamped(flight);
  flight.step = Step::kFirstStamp;
  ring_.stat(flight.id, flight.fd, flight.status);
}

void UringDriver::stamped(Flight& flight) {
  if (S_ISDIR(flight.status.stx_mode)) return failed(flight, EISDIR);
  OpenFile file{std::move(flight.fd), stamp_from(flight.status)};
  flight.read.file = shared(std::move(file), flight.local, inbox_);
  find_room(flight);
}

void UringDriver::find_room(Flight& flight) {
  Read& read = flight.read;
  const FileStamp& stamp = read.file->stamp;
  if (!stamp.regular) return end(flight, Refused{});
  if (stamp.size == 0 && !read.chunk) return put_aside(flight);
  flight.bytes = bytes_within(stamp.size, read.sample.offset, read.sample.length);
  if (flight.bytes > 0 && read.to == nullptr) {
    read.to = work_.room(read, flight.bytes);
    if (read.to == nullptr) return forget(flight);
  }
  flight.step = Step::kRead;
  flight.since = Clock::now();
  read_what_is_there(flight);
}

void UringDriver::read_what_is_there(Flight& flight) {
  const Read& read = flight.read;
  while (flight.got < flight.bytes) {
    iovec to{read.to + flight.got, flight.bytes - flight.got};
    const ssize_t count =
        ::preadv2(read.file->fd.get(), &to, 1, static_cast<off_t>(read.sample.offset + flight.got),
                  RWF_NOWAIT);
    if (count <= 0) break;  // whatever it is, the ring will find it, too
    flight.got += static_cast<std::uint64_t>(count);
  }
  time_step(flight);
  if (flight.got == flight.bytes) return check(flight);
  flight.times.waited = true;
  read_on(flight);
}

void UringDriver::read_on(Flight& flight) {
  const Read& read = flight.read;
  const std::uint64_t bytes = std::min<std::uint64_t>(flight.bytes - flight.got, 1_GiB);
  ring_.read(flight.id, read.file->fd, read.to + flight.got, static_cast<std::uint32_t>(bytes),
             read.sample.offset + flight.got);
}

void UringDriver::got(Flight& flight, std::uint64_t bytes) {
  flight.got += bytes;
  if (bytes > 0 && flight.got < flight.bytes) return read_on(flight);
  check(flight);
}

/// Whether the file is still what it was.
void UringDriver::check(Flight& flight) {
  flight.step = Step::kLastStamp;
  if (!flight.local) return ring_.stat(flight.id, flight.read.file->fd, flight.status);
  const auto now = stamp_of(flight.read.file->fd);
  time_step(flight);
  if (const auto* error = std::get_if<ErrorNumber>(&now)) return failed(flight, error->value);
  checked(flight, std::get<FileStamp>(now));
}

void UringDriver::checked(Flight& flight, const FileStamp& now) {
  if (flight.got == flight.bytes && now == flight.read.file->stamp) {
    return end(flight, BytesRead{flight.bytes});
  }
  if (flight.read.chunk) return end(flight, ErrorNumber{ESTALE});
  put_aside(flight);
}

void UringDriver::failed(Flight& flight, int error_number) {
  const bool is_unusual = error_number == EINVAL || error_number == EOPNOTSUPP;  // in a ring
  if (!is_unusual && !is_transient(error_number)) return end(flight, ErrorNumber{error_number});
  if (!flight.read.chunk) flight.read.file.reset();  // a stale handle wants a new one
  put_aside(flight);
}

void UringDriver::put_aside(Flight& flight) {
  aside_.put(std::move(flight.read));
  forget(flight);
}

void UringDriver::end(Flight& flight, const Outcome& outcome) {
  work_.done(flight.read, outcome, flight.times);
  forget(flight);
}

void UringDriver::forget(Flight& flight) {
  flights_.erase(flight.id);
  more_ = true;
}

/// Adds up what the step took so far, and begins the next.
void UringDriver::time_step(Flight& flight) {
  const auto now = Clock::now();
  const bool opening = flight.step == Step::kOpen || flight.step == Step::kFirstStamp;
  (opening ? flight.times.open_ns : flight.times.read_ns) +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - flight.since).count();
  flight.since = now;
}

}  // namespace prisma
