// Room in *data*: extents of whole pages, lowest address first, so that few pages are ever touched
// and those are touched again while they are warm. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace prisma {

struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // whole pages

  bool operator==(const Extent&) const = default;
};

class Arena {
 public:
  /// Gives the system the pages of an extent back; called once for pages that were handed out.
  using Punch = std::function<void(Extent)>;

  Arena(std::uint64_t capacity_bytes, Punch punch);

  /// An extent for that many bytes within the budget, or nothing. 0 bytes take no room.
  std::optional<Extent> reserve(std::uint64_t bytes);
  void give_back(Extent extent);

  /// Room is handed out below this many bytes only. What lies above goes back to the system as it
  /// comes free.
  void set_budget(std::uint64_t bytes);

  /// Gives all free pages that were touched back to the system.
  void punch_free();

  std::uint64_t budget_bytes() const { return budget_; }
  std::uint64_t capacity_bytes() const { return capacity_; }
  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t free_bytes() const;  // within the budget, perhaps in pieces
  std::uint64_t punched_bytes() const { return punched_; }

 private:
  void punch_above_budget(Extent extent);
  void punch_touched(Extent extent);

  const std::uint64_t capacity_;
  const Punch punch_;
  std::uint64_t budget_;
  std::uint64_t used_ = 0;         // all extents handed out
  std::uint64_t used_beyond_ = 0;  // of these, bytes above the budget
  std::uint64_t punched_ = 0;
  std::vector<bool> touched_;  // pages that were handed out since they were last punched
  std::map<std::uint64_t, std::uint64_t> free_;  // offset → bytes, never adjacent
};

}  // namespace prisma
