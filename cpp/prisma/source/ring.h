// An io_uring: what the kernel is to do goes in, what it has done comes out. By system calls alone,
// so that nothing has to be there but the kernel.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "prisma/base/fd.h"

struct io_uring_sqe;  // as in <linux/io_uring.h>
struct io_uring_cqe;
struct io_uring_params;

namespace prisma {

/// One thing that the kernel has done.
struct Completion {
  std::uint64_t id;
  std::int32_t result;  // as the system call's; a failure is a negative error number
};

/// For one thread: the one that calls `enable`. What is asked for is handed to the kernel by
/// `submit`, or earlier when the ring is full. What is given by address stays until its completion.
class Ring {
 public:
  /// Throws std::system_error where the kernel refuses, or is older than Linux 6.1.
  explicit Ring(unsigned entries);
  Ring(const Ring&) = delete;
  ~Ring();

  void enable();

  /// How many threads the kernel may use for what cannot be done without waiting.
  void set_workers(unsigned count);

  void open(std::uint64_t id, const char* path, int flags);
  void stat(std::uint64_t id, const Fd& file, struct statx& status);
  void read(std::uint64_t id, const Fd& file, std::byte* to, std::uint32_t bytes,
            std::uint64_t offset);
  void close(std::uint64_t id, Fd file);
  void await_input(std::uint64_t id, const Fd& file);

  void submit() { enter(0); }
  /// Submits, and waits until there is a completion.
  void submit_and_wait() { enter(1); }
  std::optional<Completion> take();

 private:
  /// Memory shared with the kernel.
  struct Shared {
    std::byte* start = nullptr;
    std::size_t bytes = 0;
  };
  /// Places in it.
  struct Queue {
    std::uint32_t* head = nullptr;
    std::uint32_t* tail = nullptr;
    std::uint32_t entries = 0;  // a power of two
  };

  void share(Shared& memory, std::size_t bytes, std::uint64_t offset);
  void find_places(const io_uring_params& parameters);
  io_uring_sqe& prepare(std::uint64_t id, std::uint8_t operation, int file);
  void enter(unsigned least);

  Fd fd_;
  Shared queues_, requests_;
  Queue asked_;  // the kernel moves its head
  Queue done_;   // the kernel moves its tail
  io_uring_cqe* completions_ = nullptr;
  std::uint32_t next_ = 0;       // the tail of what was asked for
  std::uint32_t submitted_ = 0;  // and of what the kernel has been handed
};

}  // namespace prisma
