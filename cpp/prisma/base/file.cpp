#include "prisma/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "prisma/base/units.h"

namespace prisma {

std::variant<FileStamp, ErrorNumber> stamp_of(const Fd& fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return ErrorNumber{errno};
  if (S_ISDIR(status.st_mode)) return ErrorNumber{EISDIR};
  // Unsigned, since a file may claim to be of the year 5000: then it wraps, and still differs.
  const auto changed_ns = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                          static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  return FileStamp{static_cast<std::uint64_t>(status.st_size),
                   static_cast<std::int64_t>(changed_ns), status.st_ino, S_ISREG(status.st_mode)};
}

std::variant<OpenFile, ErrorNumber> open_file(const char* path) {
  Fd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return ErrorNumber{errno};
  const auto stamp = stamp_of(fd);
  if (const auto* error = std::get_if<ErrorNumber>(&stamp)) return *error;
  return OpenFile{std::move(fd), std::get<FileStamp>(stamp)};
}

std::variant<std::uint64_t, ErrorNumber> read_at(const Fd& fd, std::byte* to, std::uint64_t bytes,
                                                 std::uint64_t offset) {
  constexpr std::uint64_t kMostAtOnce = 1_GiB;  // the kernel stops a little short of 2 GiB
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd.get(), to + done, std::min(bytes - done, kMostAtOnce),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrorNumber{errno};
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  return done;
}

bool is_transient(int error_number) {
  return error_number == EINTR || error_number == EAGAIN || error_number == ETIMEDOUT ||
         error_number == ESTALE;
}

std::optional<std::chrono::milliseconds> Backoff::next() {
  constexpr int kTries = 7;
  if (tries_ == kTries) return std::nullopt;
  return std::chrono::milliseconds(10 << tries_++);
}

}  // namespace prisma
