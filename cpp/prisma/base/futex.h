// Waiting for a word in shared memory to change. Works between processes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

namespace prisma {

/// Waits until `word` is woken, differs from `seen`, a signal comes, or `limit` is over.
inline void futex_wait(const std::atomic<std::uint32_t>* word, std::uint32_t seen,
                       std::chrono::nanoseconds limit) {
  timespec time{limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<std::uint32_t>* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace prisma
