// What one read gives: a whole file, or a byte range of one.
#pragma once

#include <cstdint>
#include <string>

#include "prisma/base/file.h"

namespace prisma {

struct Sample {
  std::string path;  // absolute; any bytes but NUL
  std::uint64_t offset = 0;
  std::uint64_t length = kToTheEnd;

  bool operator==(const Sample&) const = default;
};

}  // namespace prisma
