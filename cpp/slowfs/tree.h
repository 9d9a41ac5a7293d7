// The names that the kernel knows: a number for each path it has looked up.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace prisma::slowfs {

/// Thread-safe. Paths are relative to the source directory, which is "" and has number 1.
class Tree {
 public:
  Tree();

  std::string path(std::uint64_t number) const;
  static std::string join(const std::string& parent, const char* name);

  std::uint64_t remember(const std::string& path);  // one more lookup of it
  void forget(std::uint64_t number, std::uint64_t lookups);

 private:
  struct Node {
    std::string path;
    std::uint64_t lookups;
  };

  mutable std::mutex mutex_;  // guards everything below
  std::unordered_map<std::uint64_t, Node> nodes_;
  std::unordered_map<std::string, std::uint64_t> numbers_;
  std::uint64_t last_ = 1;
};

}  // namespace prisma::slowfs
