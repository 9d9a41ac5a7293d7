#include "prisma/base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace prisma {
namespace {

Fd some_fd() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_open(int number) { return ::fcntl(number, F_GETFD) != -1; }

TEST(Fd, IsClosedAtItsEnd) {
  int number = -1;
  {
    const Fd fd = some_fd();
    number = fd.get();
    EXPECT_TRUE(fd);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, HoldsNothingAtFirstAndAfterReset) {
  EXPECT_FALSE(Fd());
  EXPECT_FALSE(Fd(-1));
  Fd fd = some_fd();
  const int number = fd.get();
  fd.reset();
  EXPECT_FALSE(fd);
  EXPECT_FALSE(is_open(number));
  fd.reset();
}

TEST(Fd, HasOneOwnerAfterAMove) {
  Fd from = some_fd();
  const int number = from.get();
  Fd to(std::move(from));
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(to.get(), number);
  from = Fd();
  EXPECT_TRUE(is_open(number));
}

TEST(Fd, ClosesWhatItHeldWhenAnotherIsMovedIn) {
  Fd fd = some_fd();
  Fd other = some_fd();
  const int before = fd.get();
  const int after = other.get();
  fd = std::move(other);
  EXPECT_EQ(fd.get(), after);
  EXPECT_FALSE(is_open(before));
  EXPECT_TRUE(is_open(after));
}

TEST(Fd, SurvivesAMoveIntoItself) {
  Fd fd = some_fd();
  Fd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(fd);
  EXPECT_TRUE(is_open(fd.get()));
}

}  // namespace
}  // namespace prisma
