#include "slowfs/tree.h"

namespace prisma::slowfs {

Tree::Tree() {
  nodes_[1] = {"", 1};
  numbers_[""] = 1;
}

std::string Tree::path(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return nodes_.at(number).path;
}

std::string Tree::join(const std::string& parent, const char* name) {
  return parent.empty() ? name : parent + "/" + name;
}

std::uint64_t Tree::remember(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto [entry, fresh] = numbers_.try_emplace(path, last_ + 1);
  if (fresh) nodes_[++last_] = {path, 0};
  ++nodes_[entry->second].lookups;
  return entry->second;
}

void Tree::forget(std::uint64_t number, std::uint64_t lookups) {
  const std::lock_guard lock(mutex_);
  const auto node = nodes_.find(number);
  if (node == nodes_.end() || number == 1) return;
  node->second.lookups -= lookups;
  if (node->second.lookups > 0) return;
  numbers_.erase(node->second.path);
  nodes_.erase(node);
}

}  // namespace prisma::slowfs
