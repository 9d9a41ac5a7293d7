#include "prisma/client/own_memory.h"

#include <algorithm>

namespace prisma {
namespace {

constexpr std::size_t kMostPieces = 4;
constexpr std::uint64_t kLargestKept = 1_MiB;
constexpr std::uint64_t kStep = 64_KiB;  // capacities, so that pieces fit others' needs too

SpareMemory::Piece from_system(std::uint64_t capacity) {
  auto* start = ::operator new[](capacity, std::align_val_t{kPage});
  return {std::unique_ptr<std::byte[], SpareMemory::Free>(static_cast<std::byte*>(start)),
          capacity};
}

}  // namespace

SpareMemory::Piece SpareMemory::take(std::uint64_t bytes) {
  if (bytes > kLargestKept) return from_system(bytes);
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [bytes](const Piece& piece) { return piece.capacity >= bytes; };
    const auto found = std::find_if(pieces_.rbegin(), pieces_.rend(), fits);
    if (found != pieces_.rend()) {
      Piece piece = std::move(*found);
      pieces_.erase(std::next(found).base());
      return piece;
    }
  }
  return from_system((bytes + kStep - 1) / kStep * kStep);
}

void SpareMemory::give_back(Piece piece) {
  if (piece.capacity > kLargestKept) return;
  // Never waits: in a forked child nobody may be there to let go of the lock.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  if (pieces_.size() == kMostPieces) {
    const auto smallest = std::min_element(
        pieces_.begin(), pieces_.end(),
        [](const Piece& one, const Piece& other) { return one.capacity < other.capacity; });
    if (smallest->capacity > piece.capacity) return;
    pieces_.erase(smallest);
  }
  pieces_.push_back(std::move(piece));
}

OwnMemory::OwnMemory(std::shared_ptr<SpareMemory> spare, std::uint64_t bytes)
    : spare_(std::move(spare)), piece_(spare_ ? spare_->take(bytes) : from_system(bytes)) {}

}  // namespace prisma
