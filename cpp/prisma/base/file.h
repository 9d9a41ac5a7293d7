// Reading files: the same rules for the engine, which reads ahead, and for a client that reads
// directly.
//
// A file that changes while it is read gives wholly old or wholly new bytes, as far as its size and
// time of change tell: both are compared before and after, a changed file is read once more, and
// then it is a failure (ESTALE). Transient errors are tried again with back-off; others are not.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "prisma/base/fd.h"

namespace prisma {

inline constexpr std::uint64_t kToTheEnd = UINT64_MAX;  // as a length: whatever is there

/// What tells one content of a file from the next.
struct FileStamp {
  std::uint64_t size = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t inode = 0;
  bool regular = false;

  bool operator==(const FileStamp&) const = default;
};

struct OpenFile {
  Fd fd;
  FileStamp stamp;
};

struct ErrorNumber {
  int value;
};

/// Opens without ever blocking on a pipe. A directory fails with EISDIR, as Python's open() does.
std::variant<OpenFile, ErrorNumber> open_file(const char* path);

std::variant<FileStamp, ErrorNumber> stamp_of(const Fd& fd);

/// Reads until `bytes` are there, the file ends, or an error comes. Returns how many came.
std::variant<std::uint64_t, ErrorNumber> read_at(const Fd& fd, std::byte* to, std::uint64_t bytes,
                                                 std::uint64_t offset);

/// How many bytes [offset, offset + length) has in a file of this size.
constexpr std::uint64_t bytes_within(std::uint64_t size, std::uint64_t offset,
                                     std::uint64_t length) {
  const std::uint64_t there = size > offset ? size - offset : 0;
  return there < length ? there : length;
}

/// EINTR, EAGAIN, ETIMEDOUT, ESTALE: may go away by themselves.
bool is_transient(int error_number);

/// The pauses between tries: 10 ms, doubling, seven times (1.3 s in all).
class Backoff {
 public:
  /// The next pause, or nothing when it is time to give up.
  std::optional<std::chrono::milliseconds> next();
  int tries() const { return tries_; }

 private:
  int tries_ = 0;
};

}  // namespace prisma
