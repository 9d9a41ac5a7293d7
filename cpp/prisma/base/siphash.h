// A keyed 128-bit hash: how a sample is named in shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace prisma {

using HashKey = std::array<std::uint64_t, 2>;
using Hash128 = std::array<std::uint64_t, 2>;

/// SipHash-2-4 with 128-bit output. With a random key, two of 10 million names meet with a
/// probability below 10^-24, far below that of an undetected memory error.
///
/// Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012.
Hash128 siphash128(const HashKey& key, std::span<const std::byte> bytes);

}  // namespace prisma
