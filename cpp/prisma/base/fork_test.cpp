#include "prisma/base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace prisma {
namespace {

/// Forks; gives what the child makes of it.
int in_a_child(const std::function<int()>& task) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(task());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(AtFork, StepsAreTakenOnTheirSideAndInTheirOrder) {
  std::string steps;
  const AtFork hook({[&] { steps += 'b'; }, [&] { steps += 'p'; }, [&] { steps += 'c'; }});
  EXPECT_EQ(in_a_child([&] { return steps == "bc" ? 0 : 1; }), 0);
  EXPECT_EQ(steps, "bp");
}

TEST(AtFork, NothingIsDoneForWhatIsGone) {
  int called = 0;
  auto hook = std::make_unique<AtFork>(AtFork::Steps{[&] { ++called; }, [] {}, [] {}});
  hook.reset();
  in_a_child([] { return 0; });
  EXPECT_EQ(called, 0);
}

TEST(AtFork, AChildMayForkAndLetGoItself) {
  int depth = 0;
  auto hook = std::make_unique<AtFork>(AtFork::Steps{[] {}, [] {}, [&] { ++depth; }});
  const int seen = in_a_child([&] {
    return in_a_child([&] {
      hook.reset();
      return depth;
    });
  });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(depth, 0);
}

}  // namespace
}  // namespace prisma
