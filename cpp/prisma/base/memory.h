// Anonymous files and mappings, each with one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "prisma/base/fd.h"

namespace prisma {

/// An anonymous file of fixed size: sealed, so that no holder can shrink it under another's
/// mapping. Holes can still be punched (a FUTURE_WRITE seal would forbid that). Throws
/// std::system_error when the system has no room for it.
Fd sealed_memfd(const char* name, std::uint64_t bytes);

/// The same anonymous file, opened anew so that it can only be read.
Fd reopened_read_only(const Fd& memfd);

std::uint64_t file_bytes(const Fd& file);

/// A shared mapping, unmapped at its end.
class Mapping {
 public:
  enum class Access { kRead, kReadWrite };

  Mapping() = default;
  Mapping(const Fd& file, std::uint64_t bytes, Access access);
  Mapping(Mapping&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return start_; }
  std::uint64_t size() const { return bytes_; }

 private:
  std::byte* start_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace prisma
