// Memory of a consumer's own, for samples that do not lie in the shared buffer: whole pages, and
// used again while they are warm. Fresh memory for each sample would cost as much as reading it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "prisma/base/units.h"

namespace prisma {

/// A few pieces that were given back, for the next to be taken. Thread-safe.
class SpareMemory {
 public:
  struct Free {
    void operator()(std::byte* start) const { ::operator delete[](start, std::align_val_t{kPage}); }
  };
  struct Piece {
    std::unique_ptr<std::byte[], Free> start;
    std::uint64_t capacity = 0;
  };

  Piece take(std::uint64_t bytes);
  void give_back(Piece piece);

 private:
  std::mutex mutex_;           // guards everything below
  std::vector<Piece> pieces_;  // the last given back is the last
};

/// Goes back to the spare memory it came from, which it keeps alive, when it is destroyed.
class OwnMemory {
 public:
  OwnMemory() = default;

  /// Without spare memory it comes from the system and goes back there.
  OwnMemory(std::shared_ptr<SpareMemory> spare, std::uint64_t bytes);
  OwnMemory(OwnMemory&& other) noexcept = default;
  OwnMemory& operator=(OwnMemory&& other) noexcept {
    std::swap(spare_, other.spare_);
    std::swap(piece_, other.piece_);
    return *this;
  }
  ~OwnMemory() {
    if (spare_ && piece_.start) spare_->give_back(std::move(piece_));
  }

  std::byte* data() const { return piece_.start.get(); }

 private:
  std::shared_ptr<SpareMemory> spare_;
  SpareMemory::Piece piece_;
};

}  // namespace prisma
