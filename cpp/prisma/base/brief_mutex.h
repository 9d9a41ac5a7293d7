// A lock for sections that are over in a microsecond.
#pragma once

#include <mutex>

namespace prisma {

/// Looks a few times before it sleeps: when many readers come back from storage at once, sleeping
/// and being woken would cost more than the section does.
class BriefMutex {
 public:
  void lock() {
    constexpr int kLooks = 100;
    for (int look = 0; look < kLooks; ++look) {
      if (mutex_.try_lock()) return;
      pause();
    }
    mutex_.lock();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::mutex mutex_;
};

}  // namespace prisma
