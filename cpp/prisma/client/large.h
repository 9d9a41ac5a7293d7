// A sample that is too large to lie in the buffer in one piece: it goes through it in chunks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "prisma/client/bytes.h"
#include "prisma/plan/sample.h"

namespace prisma {

/// Taken, and its chunks not yet. The engine reads them ahead in their order, within the budget.
class Large {
 public:
  struct Shape {
    std::uint64_t bytes = 0;
    std::uint64_t chunk_bytes = 1;
  };

  Large(Bytes hold, std::uint32_t generation, Sample sample, Shape shape)
      : hold_(std::move(hold)),
        generation_(generation),
        sample_(std::move(sample)),
        shape_(shape) {}

  std::uint64_t size() const { return shape_.bytes; }
  std::uint64_t chunks() const {
    return (shape_.bytes + shape_.chunk_bytes - 1) / shape_.chunk_bytes;
  }

  /// Which part of the file a chunk is.
  Sample range(std::uint64_t chunk) const {
    const std::uint64_t start = chunk * shape_.chunk_bytes;
    return {sample_.path, sample_.offset + start, std::min(shape_.chunk_bytes, size() - start)};
  }
  std::uint32_t entry() const { return hold_.entry(); }
  std::uint32_t generation() const { return generation_; }
  std::uint64_t chunk_bytes() const { return shape_.chunk_bytes; }

 private:
  Bytes hold_;  // reading ahead ends when this does
  std::uint32_t generation_;
  Sample sample_;
  Shape shape_;
};

}  // namespace prisma
