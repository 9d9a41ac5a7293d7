// The index: finds an entry by name. One writer, the engine; any number of readers, which follow
// the chains while the engine changes them. Who finds nothing looks again when a bucket's version
// tells that the chain changed meanwhile.
//
// A crash of the engine in the middle of a change leaves a bucket's version odd, with its chain
// whole; readers still find what is in it, and for what is not, they give up after a bounded number
// of looks and so read directly.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prisma/base/siphash.h"
#include "prisma/buffer/layout.h"

namespace prisma {

/// An entry as a reader saw it: `word` is what a compare-and-swap must still find.
struct Found {
  std::uint32_t entry = 0;
  EntryWord word;
};

/// The first entry of that name in its chain that nobody has taken.
std::optional<Found> find(const ControlLayout& control, const Hash128& name);

/// Sets an entry's word from what `step` makes of it, as often as another interferes.
/// Returns the word before, or nothing when the step is not allowed.
template <typename Step>
std::optional<EntryWord> change(Entry& entry, Step step) {
  std::uint64_t raw = entry.word.load(std::memory_order_acquire);
  while (true) {
    const NextWord next = step(unpack(raw));
    if (!next) return {};
    if (entry.word.compare_exchange_weak(raw, pack(*next), std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      return unpack(raw);
    }
  }
}

/// The engine's hold on the index: hands out free entries and keeps the chains. Trusts no link that
/// it reads from shared memory: it has its own copy. Not thread-safe.
class IndexWriter {
 public:
  explicit IndexWriter(ControlLayout& control);

  /// Publishes an entry under a name, at the end of its chain. Nothing when all are in use.
  std::optional<std::uint32_t> publish(const Hash128& name, std::uint32_t lane);

  /// Takes a FREE entry out of its chain, to be used again.
  void remove(std::uint32_t entry);

  std::uint32_t in_use() const { return kEntries - static_cast<std::uint32_t>(free_.size()); }

 private:
  struct Link {
    std::uint32_t next = 0, previous = 0;  // plus one; 0: none
    std::uint32_t bucket = 0;
  };

  ControlLayout& control_;
  std::vector<std::uint32_t> free_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> heads_, tails_;  // plus one
};

}  // namespace prisma
