#include "prisma/buffer/arena.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "prisma/base/units.h"

namespace prisma {
namespace {

std::uint64_t bytes_beyond(Extent extent, std::uint64_t limit) {
  const std::uint64_t end = extent.offset + extent.bytes;
  return end <= limit ? 0 : end - std::max(extent.offset, limit);
}

}  // namespace

Arena::Arena(std::uint64_t capacity_bytes, Punch punch)
    : capacity_(capacity_bytes / kPage * kPage),
      punch_(std::move(punch)),
      budget_(capacity_),
      touched_(capacity_ / kPage) {
  free_.emplace(0, capacity_);
}

std::optional<Extent> Arena::reserve(std::uint64_t bytes) {
  if (bytes > capacity_) return {};  // before rounding up, which could overflow
  const std::uint64_t wanted = whole_pages(bytes);
  if (wanted == 0) return Extent{};
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    const auto [offset, size] = *piece;
    if (offset + wanted > budget_) return {};
    if (size < wanted) continue;
    if (size == wanted) {
      free_.erase(piece);
    } else {
      auto node = free_.extract(piece);
      node.key() = offset + wanted;
      node.mapped() = size - wanted;
      free_.insert(std::move(node));
    }
    used_ += wanted;
    const auto first = touched_.begin() + static_cast<std::ptrdiff_t>(offset / kPage);
    std::fill(first, first + static_cast<std::ptrdiff_t>(wanted / kPage), true);
    return Extent{offset, wanted};
  }
  return {};
}

void Arena::give_back(Extent extent) {
  if (extent.bytes == 0) return;
  used_ -= extent.bytes;
  used_beyond_ -= bytes_beyond(extent, budget_);
  punch_above_budget(extent);
  auto next = free_.lower_bound(extent.offset);
  if (next != free_.end() && next->first == extent.offset + extent.bytes) {
    extent.bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == extent.offset) {
      before->second += extent.bytes;
      return;
    }
  }
  free_.emplace_hint(next, extent.offset, extent.bytes);
}

void Arena::set_budget(std::uint64_t bytes) {
  budget_ = std::min(std::max(bytes / kPage * kPage, kPage), capacity_);
  std::uint64_t free_beyond = 0;
  for (const auto& [offset, size] : free_) {
    free_beyond += bytes_beyond({offset, size}, budget_);
    punch_above_budget({offset, size});
  }
  used_beyond_ = capacity_ - budget_ - free_beyond;
}

void Arena::punch_free() {
  for (const auto& [offset, size] : free_) punch_touched({offset, size});
}

std::uint64_t Arena::free_bytes() const { return budget_ - (used_ - used_beyond_); }

void Arena::punch_above_budget(Extent extent) {
  const std::uint64_t beyond = bytes_beyond(extent, budget_);
  if (beyond > 0) punch_touched({extent.offset + extent.bytes - beyond, beyond});
}

void Arena::punch_touched(Extent extent) {
  auto page = touched_.begin() + static_cast<std::ptrdiff_t>(extent.offset / kPage);
  const auto end = page + static_cast<std::ptrdiff_t>(extent.bytes / kPage);
  while ((page = std::find(page, end, true)) != end) {
    const auto first = page;
    page = std::find(first, end, false);
    std::fill(first, page, false);
    const Extent run{static_cast<std::uint64_t>(first - touched_.begin()) * kPage,
                     static_cast<std::uint64_t>(page - first) * kPage};
    punch_(run);
    punched_ += run.bytes;
  }
}

}  // namespace prisma
