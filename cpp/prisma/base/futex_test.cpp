#include "prisma/base/futex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "prisma/base/memory.h"
#include "prisma/base/units.h"

namespace prisma {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Word = std::atomic<std::uint32_t>;

constexpr auto kLong = 60s;  // never over in a test that passes

TEST(Futex, DoesNotWaitForAWordThatHasChangedAlready) {
  const Word word = 1;
  const auto begin = Clock::now();
  futex_wait(&word, 0, kLong);
  EXPECT_LT(Clock::now() - begin, kLong / 2);
}

TEST(Futex, WaitsNoLongerThanItsLimit) {
  const Word word = 0;
  const auto begin = Clock::now();
  futex_wait(&word, 0, 2ms);
  const auto waited = Clock::now() - begin;
  EXPECT_GE(waited, 1ms);
  EXPECT_LT(waited, 30s);
}

TEST(Futex, UnderstandsLimitsBeyondASecond) {
  const Word word = 1;
  futex_wait(&word, 0, 2500ms);  // a wrong split into s and ns would be refused
  SUCCEED();
}

TEST(Futex, WakesAllThreadsThatWait) {
  const Word word = 0;
  std::atomic<int> awake = 0;
  std::vector<std::jthread> sleepers;
  for (int i = 0; i < 4; ++i) {
    sleepers.emplace_back([&] {
      futex_wait(&word, 0, kLong);
      ++awake;
    });
  }
  const auto deadline = Clock::now() + kLong / 2;
  while (awake != 4 && Clock::now() < deadline) {
    futex_wake_all(&word);  // again and again: nobody tells when a thread has gone to sleep
    std::this_thread::yield();
  }
  EXPECT_EQ(awake, 4);
}

TEST(Futex, WakesAnotherProcessThroughAnotherMapping) {
  const Fd file = sealed_memfd("test", kPage);
  const pid_t child = ::fork();
  if (child == 0) {
    const Mapping mapping(file, kPage, Mapping::Access::kReadWrite);
    futex_wait(reinterpret_cast<const Word*>(mapping.data()), 0, kLong);
    ::_exit(0);
  }
  const Mapping mapping(file, kPage, Mapping::Access::kReadWrite);
  const auto deadline = Clock::now() + kLong / 2;
  int status = -1;
  while (::waitpid(child, &status, WNOHANG) == 0 && Clock::now() < deadline) {
    futex_wake_all(reinterpret_cast<const Word*>(mapping.data()));
    std::this_thread::yield();
  }
  EXPECT_LT(Clock::now(), deadline);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(Futex, IsHeardInMemoryThatTheSleeperMayOnlyRead) {
  const Fd file = sealed_memfd("test", kPage);
  const Mapping readable(reopened_read_only(file), kPage, Mapping::Access::kRead);
  const Mapping writable(file, kPage, Mapping::Access::kReadWrite);
  std::atomic<bool> awake = false;
  const std::jthread sleeper([&] {
    futex_wait(reinterpret_cast<const Word*>(readable.data()), 0, kLong);
    awake = true;
  });
  const auto deadline = Clock::now() + kLong / 2;
  while (!awake && Clock::now() < deadline) {
    futex_wake_all(reinterpret_cast<const Word*>(writable.data()));
    std::this_thread::yield();
  }
  EXPECT_TRUE(awake);
}

}  // namespace
}  // namespace prisma
