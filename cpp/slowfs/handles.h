// What is open, under the numbers that the kernel knows it by.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace prisma::slowfs {

/// Thread-safe; what is in it is not.
template <typename Owner>
class Handles {
 public:
  using Thing = typename Owner::element_type;

  std::uint64_t add(Owner owner) {
    const std::lock_guard lock(mutex_);
    open_.emplace(++last_, std::move(owner));
    return last_;
  }

  /// Stays until it is closed, and the kernel closes nothing that is in use.
  Thing& at(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    return *open_.at(number);
  }

  void close(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    open_.erase(number);
  }

 private:
  mutable std::mutex mutex_;  // guards everything below
  std::unordered_map<std::uint64_t, Owner> open_;
  std::uint64_t last_ = 0;
};

}  // namespace prisma::slowfs
