#include "prisma/source/posix_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "prisma/base/testing/temporary_directory.h"
#include "prisma/source/testing/given_work.h"

namespace prisma {
namespace {

using testing::GivenWork;
using testing::TemporaryDirectory;

std::ptrdiff_t threads() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

TEST(PosixSource, BeginsWithOneReaderAndHasAllFromTheNextCallOn) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("sample", "bytes");
  GivenWork work;
  work.set_depth(64);
  std::thread([] {}).join();  // a sanitizer has a thread of its own from the first one on
  const auto before = threads();
  PosixSource source(work);
  source.set_depth(64);
  EXPECT_EQ(threads(), before + 1);
  EXPECT_EQ(work.ended(work.give({path})).bytes, "bytes");
  EXPECT_LE(threads(), before + 2);
  source.set_depth(64);
  EXPECT_EQ(threads(), before + 64);
}

TEST(PosixSource, HasAReaderForEachReadThatHangs) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("sample", "bytes");
  std::mutex mutex;
  GivenWork work;
  work.set_depth(8);
  work.on_room([&](const Read&) {
    const std::lock_guard hangs(mutex);
    return true;
  });
  PosixSource source(work);
  source.set_depth(8);
  std::vector<std::uint64_t> tickets;
  {
    const std::lock_guard all_hang(mutex);
    for (int count = 0; count < 20; ++count) tickets.push_back(work.give({path}));
    work.await_in_flight(8);
  }
  for (const std::uint64_t ticket : tickets) EXPECT_EQ(work.ended(ticket).bytes, "bytes");
}

TEST(PosixSource, EndsWhileReadersAreStillBeingStarted) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("sample", "bytes");
  for (int round = 0; round < 50; ++round) {
    GivenWork work;
    work.set_depth(32);
    PosixSource source(work);
    source.set_depth(32);
    for (int count = 0; count < 40; ++count) work.give({path});
    work.ended(1 + static_cast<std::uint64_t>(round) % 20);
  }
}

}  // namespace
}  // namespace prisma
