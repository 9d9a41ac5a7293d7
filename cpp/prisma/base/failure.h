// Why there are no bytes: plain data that crosses threads and processes and belongs to one sample.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace prisma {

struct Failure {
  int error_number = 0;
  std::string path;
};

/// For set-up only, where no sample is concerned: the system refused something PRISMA cannot do
/// without.
[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace prisma
