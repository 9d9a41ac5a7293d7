// The command line.
#pragma once

#include <cstddef>
#include <string>

#include "slowfs/behaviour.h"

namespace prisma::slowfs {

struct Options {
  std::string source;
  std::string mountpoint;
  int control_fd = -1;  // a connected stream socket; the mount ends when its other end closes
  int owner_pid = 0;    // the mount ends with this process; 0 is nobody
  std::size_t threads = 16;
  std::size_t max_read = 1 << 20;
  bool allow_other = false;
  bool remove_mountpoint = false;  // once it is unmounted
  Behaviour behaviour;
};

extern const char *const kUsage;

/// Throws std::invalid_argument.
Options parse_options(int count, char **arguments);

}  // namespace prisma::slowfs
