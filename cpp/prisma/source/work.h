// What a source does for the engine, and what it asks of it. One contract for every source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

#include "prisma/base/file.h"
#include "prisma/plan/sample.h"

namespace prisma {

/// One read that the engine wants done.
struct Read {
  std::uint64_t ticket = 0;
  Sample sample;
  std::shared_ptr<OpenFile> file;  // where it is open already: a chunk, or one that waited for room
  std::byte* to = nullptr;         // where room was found already
  bool chunk = false;  // of a stream: the file must not have changed since it was opened
};

/// What became of a read, besides its bytes.
struct ReadTimes {
  std::int64_t open_ns = 0;
  std::int64_t read_ns = 0;
  bool waited = false;  // for storage; otherwise the page cache had it all
};

struct BytesRead {
  std::uint64_t bytes;
};
struct Refused {};  // not a regular file: only a direct read can do it justice
using Outcome = std::variant<BytesRead, ErrorNumber, Refused>;

/// Where reads come from and go to. Thread-safe.
class Work {
 public:
  virtual ~Work() = default;

  /// The next read for reader number `reader`, in the order in which samples will be consumed.
  /// Waits until there is one; once stopped it does not wait, and nothing comes when there is none
  /// or so many readers are not wanted.
  virtual std::optional<Read> next(std::stop_token stop, std::size_t reader) = 0;

  /// Room for that many bytes of a read, replacing what it had. Nothing: the engine has taken the
  /// read over together with its file (no room now, a stream, cancelled), so go on to the next.
  virtual std::byte* room(Read& read, std::uint64_t bytes) = 0;

  /// Ends a read. That wakes nobody who waits for the next one: ask for it yourself.
  virtual void done(const Read& read, const Outcome& outcome, ReadTimes times) = 0;

  /// A transient error was met and the read is tried again.
  virtual void retried() = 0;
};

}  // namespace prisma
