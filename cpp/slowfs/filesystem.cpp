#include "slowfs/filesystem.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace prisma::slowfs {
namespace {

constexpr auto kWorthInterrupting = std::chrono::milliseconds(100);
constexpr std::size_t kPage = 4096;
constexpr unsigned kMaxBackground = 4096;  // read-ahead requests that the kernel may have under way

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
/// Memory that starts on a page: the kernel copies into it about twice as fast.
char* page_aligned_buffer(std::size_t size) {
  thread_local std::unique_ptr<char, Free> buffer;
  thread_local std::size_t capacity = 0;
  if (capacity < size) {
    capacity = (size + kPage - 1) / kPage * kPage;
    buffer.reset(static_cast<char*>(std::aligned_alloc(kPage, capacity)));
    if (!buffer) throw std::bad_alloc();
  }
  return buffer.get();
}

const char* or_dot(const std::string& path) { return path.empty() ? "." : path.c_str(); }

int status_of(const Fd& root, const std::string& path, struct stat& status) {
  return ::fstatat(root.get(), or_dot(path), &status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

Fd open_root(const std::string& source) {
  Fd root(::open(source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) throw std::system_error(errno, std::generic_category(), source);
  return root;
}

}  // namespace

Filesystem::Filesystem(const std::string& source, const Behaviour& behaviour, std::size_t max_read,
                       Schedule& schedule)
    : root_(open_root(source)), max_read_(max_read), schedule_(schedule), behaviour_(behaviour) {}

Behaviour Filesystem::behaviour() const {
  const std::lock_guard lock(mutex_);
  return behaviour_;
}

void Filesystem::set_behaviour(const Behaviour& behaviour) {
  const std::lock_guard lock(mutex_);
  behaviour_ = behaviour;
}

void Filesystem::release(std::uint64_t rule) {
  faults_.remove(rule);
  schedule_.release(rule);
}

void Filesystem::configure(fuse_conn_info& connection) const {
  connection.max_read = max_read_;
  connection.max_write = max_read_;  // from this libfuse derives how many pages one request has
  connection.max_readahead = max_read_;
  connection.max_background = kMaxBackground;  // the default of 12 would cap reads in flight
}

void Filesystem::lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const Call call(request, Kind::kLookup, counters_);
  const std::string path = Tree::join(tree_.path(parent), name);
  const Verdict verdict = faults_.judge(path, Moment::kStat);
  later(call, {path, Moment::kStat, 0, 0}, verdict, {}, [this, call, path] {
    struct stat status {};
    if (const int error = status_of(root_, path, status)) return call.fail(error);
    call.answer(entry_of(path, status));
  });
}

void Filesystem::getattr(fuse_req_t request, fuse_ino_t number) {
  const Call call(request, Kind::kStat, counters_);
  const std::string path = tree_.path(number);
  const Verdict verdict = faults_.judge(path, Moment::kStat);
  later(call, {path, Moment::kStat, 0, 0}, verdict, {}, [this, call, path] {
    struct stat status {};
    if (const int error = status_of(root_, path, status)) return call.fail(error);
    call.answer(status, behaviour().attr_timeout_s);
  });
}

void Filesystem::readlink(fuse_req_t request, fuse_ino_t number) {
  char target[PATH_MAX + 1];
  const auto size =
      ::readlinkat(root_.get(), tree_.path(number).c_str(), target, sizeof target - 1);
  if (size < 0) {
    fuse_reply_err(request, errno);
  } else {
    target[size] = '\0';
    fuse_reply_readlink(request, target);
  }
}

void Filesystem::open(fuse_req_t request, fuse_ino_t number, const fuse_file_info& info) {
  const Call call(request, Kind::kOpen, counters_);
  const std::string path = tree_.path(number);
  const std::uint64_t visit = counters_.open(path);
  const Verdict verdict = faults_.judge(path, Moment::kOpen);
  later(call, {path, Moment::kOpen, 0, visit}, verdict, {},
        [this, call, path, visit, info] { open_now(call, path, visit, info); });
}

void Filesystem::open_now(const Call& call, const std::string& path, std::uint64_t visit,
                          fuse_file_info info) {
  Fd fd(::openat(root_.get(), path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return call.fail(errno);
  const Behaviour now = behaviour();
  info.fh = files_.add(std::make_unique<OpenFile>(OpenFile{std::move(fd), path, visit}));
  info.direct_io = now.direct_io || faults_.wants_direct_io(path);
  info.keep_cache = now.keep_cache;
  if (call.answer(info) != 0) files_.close(info.fh);
}

void Filesystem::read(fuse_req_t request, std::size_t size, off_t offset,
                      const fuse_file_info& info) {
  const Call call(request, Kind::kRead, counters_);
  OpenFile& file = files_.at(info.fh);
  const auto at = static_cast<std::uint64_t>(offset);
  const Verdict verdict = faults_.judge(file.path, Moment::kRead);
  size = std::min<std::uint64_t>(
      {size, verdict.short_bytes, verdict.end_at - std::min(verdict.end_at, at)});
  const Behaviour slow = behaviour();
  const TimePoint now = Clock::now();
  const TimePoint admitted =
      std::max(bandwidth_.reserve(static_cast<double>(size), slow.bytes_per_s, now),
               read_rate_.reserve(1, slow.reads_per_s, now));
  later(call, {file.path, Moment::kRead, at, file.visit}, verdict, admitted,
        [&file, call, size, offset] {
          char* bytes = page_aligned_buffer(std::max(size, kPage));
          const auto got = ::pread(file.fd.get(), bytes, size, offset);
          if (got < 0) return call.fail(errno);
          call.answer(bytes, static_cast<std::size_t>(got));
        });
}

void Filesystem::release(fuse_req_t request, const fuse_file_info& info) {
  files_.close(info.fh);
  fuse_reply_err(request, 0);
}

void Filesystem::opendir(fuse_req_t request, fuse_ino_t number, const fuse_file_info& info) {
  const Call call(request, Kind::kOpendir, counters_);
  const std::string path = tree_.path(number);
  const int fd = ::openat(root_.get(), or_dot(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  Directory directory(fd < 0 ? nullptr : ::fdopendir(fd));
  if (!directory) return call.fail(errno);
  fuse_file_info opened = info;
  opened.fh = directories_.add(std::move(directory));
  if (call.answer(opened) != 0) directories_.close(opened.fh);
}

void Filesystem::readdir(fuse_req_t request, std::size_t size, off_t offset,
                         const fuse_file_info& info) {
  const Call call(request, Kind::kReaddir, counters_);
  DIR& directory = directories_.at(info.fh);
  char* bytes = page_aligned_buffer(size);
  std::size_t used = 0;
  ::seekdir(&directory, offset);
  while (const dirent* entry = ::readdir(&directory)) {
    struct stat status {};
    status.st_ino = entry->d_ino;
    status.st_mode = DTTOIF(entry->d_type);
    const std::size_t needed =
        fuse_add_direntry(request, bytes + used, size - used, entry->d_name, &status, entry->d_off);
    if (needed > size - used) break;
    used += needed;
  }
  call.answer(bytes, used);
}

void Filesystem::releasedir(fuse_req_t request, const fuse_file_info& info) {
  directories_.close(info.fh);
  fuse_reply_err(request, 0);
}

void Filesystem::statfs(fuse_req_t request) {
  struct statvfs status {};
  if (::fstatvfs(root_.get(), &status) == 0) {
    fuse_reply_statfs(request, &status);
  } else {
    fuse_reply_err(request, errno);
  }
}

void Filesystem::later(const Call& call, const Occasion& occasion, const Verdict& verdict,
                       TimePoint not_before, std::function<void()> act) {
  const TimePoint now = Clock::now();
  const TimePoint due = std::max(now, not_before) + delay_of(behaviour(), occasion) + verdict.delay;
  if (verdict.error != 0) act = [call, error = verdict.error] { call.fail(error); };
  if (due <= now && verdict.held_by == 0) return act();
  wait(call, due, verdict, std::move(act));
}

void Filesystem::wait(const Call& call, TimePoint due, const Verdict& verdict,
                      std::function<void()> act) {
  const bool held = verdict.held_by != 0;
  const fuse_req_t request = call.request();
  if (!held && due - Clock::now() < kWorthInterrupting) {
    return schedule_.add(due, {request, 0, [call, act = std::move(act)](bool) { act(); }});
  }
  // A killed process cannot end before its request is answered, so a long wait must be cut short.
  const auto interrupted = [](fuse_req_t which, void* schedule) {
    static_cast<Schedule*>(schedule)->interrupt(which);
  };
  fuse_req_interrupt_func(request, interrupted, &schedule_);
  const auto finish = [this, call, act = std::move(act)](bool was_interrupted) {
    fuse_req_interrupt_func(call.request(), nullptr, nullptr);
    schedule_.forget(call.request());
    was_interrupted ? call.fail(EINTR) : act();
  };
  schedule_.add(held ? TimePoint::max() : due, {request, verdict.held_by, finish});
}

fuse_entry_param Filesystem::entry_of(const std::string& path, const struct stat& status) {
  fuse_entry_param entry{};
  entry.ino = tree_.remember(path);
  entry.attr = status;
  entry.attr_timeout = entry.entry_timeout = behaviour().attr_timeout_s;
  return entry;
}

}  // namespace prisma::slowfs
