// prisma-slowfs: shows a directory as if it lay on slow storage.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <iostream>

#include "slowfs/control.h"
#include "slowfs/filesystem.h"
#include "slowfs/loop.h"
#include "slowfs/options.h"
#include "slowfs/session.h"

namespace prisma::slowfs {
namespace {

void lift_limits() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // or waits would end 50 us late
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

void run(const Options &options) {
  lift_limits();
  if (options.control_fd >= 0) ::fcntl(options.control_fd, F_SETFD, FD_CLOEXEC);
  Schedule schedule;
  Filesystem filesystem(options.source, options.behaviour, options.max_read, schedule);
  Control control(options.control_fd, options.owner_pid, filesystem);
  {
    const Session session(options, filesystem);
    const Loop loop(session.get(), schedule, options.threads, [&control] { control.end(); });
    control.run();
  }
  if (options.remove_mountpoint) ::rmdir(options.mountpoint.c_str());
}

}  // namespace
}  // namespace prisma::slowfs

int main(int count, char **arguments) {
  using namespace prisma::slowfs;
  if (count == 2 && std::strcmp(arguments[1], "--help") == 0) {
    std::cout << kUsage;
    return 0;
  }
  try {
    run(parse_options(count, arguments));
    return 0;
  } catch (const std::exception &problem) {
    std::cerr << "prisma-slowfs: " << problem.what() << '\n';
    return 1;
  }
}
