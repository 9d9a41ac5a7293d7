// Sizes that read as they are meant.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prisma {

constexpr std::uint64_t operator""_KiB(unsigned long long count) { return count << 10; }
constexpr std::uint64_t operator""_MiB(unsigned long long count) { return count << 20; }
constexpr std::uint64_t operator""_GiB(unsigned long long count) { return count << 30; }

inline constexpr std::uint64_t kPage = 4_KiB;

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace prisma
