#include "prisma/buffer/index.h"

#include <numeric>

namespace prisma {
namespace {

std::uint32_t bucket_of(const Hash128& name) { return name[0] % kBuckets; }

/// Marks a bucket as being changed, for as long as it lives.
class Changing {
 public:
  explicit Changing(Bucket& bucket) : bucket_(bucket) {
    bucket_.version.fetch_add(1, std::memory_order_acq_rel);
  }
  ~Changing() { bucket_.version.fetch_add(1, std::memory_order_release); }
  Changing(const Changing&) = delete;

 private:
  Bucket& bucket_;
};

bool open_to_be_taken(EntryState state) {
  return state == EntryState::kQueued || state == EntryState::kReading ||
         state == EntryState::kReady;
}

/// Follows the chain once. What it finds is good even while the chain changes, since taking it is a
/// compare-and-swap; what it does not find may be there all the same.
std::optional<Found> follow(const ControlLayout& control, const Bucket& bucket,
                            const Hash128& name) {
  std::uint32_t at = bucket.head.load(std::memory_order_acquire);
  for (std::uint32_t steps = 0; at != 0 && at <= kEntries && steps < kEntries; ++steps) {
    const Entry& entry = control.entries[at - 1];
    const EntryWord word = unpack(entry.word.load(std::memory_order_acquire));
    const bool same = entry.name[0].load(std::memory_order_acquire) == name[0] &&
                      entry.name[1].load(std::memory_order_acquire) == name[1];
    if (same && open_to_be_taken(word.state)) return Found{at - 1, word};
    at = entry.next.load(std::memory_order_acquire);
  }
  return {};
}

}  // namespace

std::optional<Found> find(const ControlLayout& control, const Hash128& name) {
  constexpr int kLooks = 10'000;
  const Bucket& bucket = control.buckets[bucket_of(name)];
  for (int look = 0; look < kLooks; ++look) {
    const std::uint32_t version = bucket.version.load(std::memory_order_acquire);
    if (const auto found = follow(control, bucket, name)) return found;
    const bool changing = version % 2 == 1;
    if (!changing && bucket.version.load(std::memory_order_acquire) == version) return {};
  }
  return {};
}

IndexWriter::IndexWriter(ControlLayout& control)
    : control_(control), free_(kEntries), links_(kEntries), heads_(kBuckets), tails_(kBuckets) {
  std::iota(free_.rbegin(), free_.rend(), 0u);
}

std::optional<std::uint32_t> IndexWriter::publish(const Hash128& name, std::uint32_t lane) {
  if (free_.empty()) return {};
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Entry& entry = control_.entries[index];
  const std::uint32_t bucket = bucket_of(name);
  entry.name[0].store(name[0], std::memory_order_release);
  entry.name[1].store(name[1], std::memory_order_release);
  entry.lane.store(lane, std::memory_order_release);
  entry.next.store(0, std::memory_order_release);
  // Not `change`: whatever a client may have scribbled here, the engine knows it to be free.
  EntryWord word = unpack(entry.word.load(std::memory_order_acquire));
  word.state = EntryState::kFree;
  entry.word.store(pack(*entry_engine::publish(word)), std::memory_order_release);

  const Changing changing(control_.buckets[bucket]);
  const std::uint32_t last = tails_[bucket];
  links_[index] = {0, last, bucket};
  if (last != 0) {
    links_[last - 1].next = index + 1;
    control_.entries[last - 1].next.store(index + 1, std::memory_order_release);
  } else {
    heads_[bucket] = index + 1;
    control_.buckets[bucket].head.store(index + 1, std::memory_order_release);
  }
  tails_[bucket] = index + 1;
  return index;
}

void IndexWriter::remove(std::uint32_t index) {
  const Link link = links_[index];
  Bucket& bucket = control_.buckets[link.bucket];
  const Changing changing(bucket);
  if (link.previous != 0) {
    links_[link.previous - 1].next = link.next;
    control_.entries[link.previous - 1].next.store(link.next, std::memory_order_release);
  } else {
    heads_[link.bucket] = link.next;
    bucket.head.store(link.next, std::memory_order_release);
  }
  if (link.next != 0) {
    links_[link.next - 1].previous = link.previous;
  } else {
    tails_[link.bucket] = link.previous;
  }
  free_.push_back(index);
}

}  // namespace prisma
