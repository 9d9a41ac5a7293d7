// The ledger: the engine's own truth about every published entry and every block of bytes, and the
// only place that moves either. Shared memory is written from here and never relied on: what a
// client scribbles over an entry can cost that entry, nothing else. Not thread-safe.
//
// An entry is one occurrence of a sample in a plan; a block is the bytes of one read. Entries that
// want the same bytes at the same time share a block; it is freed with its last entry.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "prisma/buffer/arena.h"
#include "prisma/buffer/index.h"
#include "prisma/engine/lane.h"
#include "prisma/source/work.h"
#include "prisma/wire/message.h"

namespace prisma {

/// A large sample that is being read chunk by chunk.
struct Stream {
  std::shared_ptr<OpenFile> file;
  std::uint64_t bytes = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint64_t next_chunk = 0;
  std::uint32_t outstanding = 0;  // chunks published and not given back
  std::deque<EntryId> published;  // of these; some may be gone
};

/// The bytes of one read, on their way or there.
struct Block {
  enum class Phase { kReading, kParked, kPlaced, kReady };

  std::uint64_t ticket = 0;
  Hash128 content{};
  Phase phase = Phase::kReading;
  bool demanded = false;
  Extent extent;
  std::vector<std::uint32_t> entries;
  std::shared_ptr<OpenFile> file;  // of a parked or placed one, or of a stream's chunk
  std::uint64_t wanted_bytes = 0;  // of a parked or placed one
  std::uint64_t bytes = 0;         // of a ready one
  EntryKind kind = EntryKind::kBytes;
  std::int32_t error_number = 0;
};

/// One published entry.
struct Record {
  enum class Phase { kQueued, kReading, kReady, kConsumed };

  bool live = false;
  Phase phase = Phase::kQueued;
  std::uint32_t generation = 0;
  Lane* lane = nullptr;
  Place place;
  Sample sample;
  Hash128 content{};
  Block* block = nullptr;
  int pins = 0;
  bool pin_seen = false;
  std::uint64_t free_after_drain = 0;  // of a pinned one that was given back; 0: not yet
  std::unique_ptr<Stream> stream;      // of the head of a stream
  std::optional<std::uint32_t> head;   // of a chunk: its stream's head
  std::size_t live_at = 0;
};

class Ledger {
 public:
  Ledger(ControlLayout& control, std::byte* data, Arena::Punch punch);

  /// Publishes one occurrence of a sample. Nothing when the table is full.
  std::optional<std::uint32_t> publish(Lane& lane, Place place, const Hash128& name, Sample sample);

  /// Starts reading a queued entry, or shares a block that has its bytes or will have them.
  /// Returns the new block to read; nothing when none is needed.
  Block* start(std::uint32_t entry);

  /// Gives a block room; evicts nothing.
  bool place(Block& block, std::uint64_t bytes);
  void give_room_back(Block& block);

  /// A block's bytes, or the reason why there are none, are there.
  void finish(Block& block, EntryKind kind, std::uint64_t bytes, std::int32_t error_number);

  /// Turns a block that is being read into a stream for each of its entries.
  void finish_as_stream(Block& block, std::shared_ptr<OpenFile> file, std::uint64_t bytes);

  /// Publishes more chunks of a stream, up to its window.
  void top_up(std::uint32_t head);

  /// Evicts what is needed last, and later than `due`, until that many bytes lie free in one piece.
  bool evict_for(std::uint64_t bytes, double due);

  /// Drops an entry that will not be taken; one that a consumer holds stays until it is given back.
  void drop(std::uint32_t entry);

  /// Looks at the entries whose turn it is in each lane, and as far on as it finds any that were
  /// taken: notes those, frees what was given back, drops what is stale.
  void sweep();

  /// The same for all entries, which is only needed now and then.
  void sweep_all();

  void cancel(Lane& lane);
  void client_gone(ClientId client);

  /// A forked child sees these bytes too, until they are unpinned as often. Nothing when that
  /// client does not hold them.
  std::optional<EntryId> pin(ClientId client, std::uint32_t entry);
  void unpin(const EntryId& pinned);

  /// Between these two all is looked at that clients had sent before. A pinned entry that was given
  /// back and has no pin left is freed only after that: another pin may be on its way.
  void begin_drain() { ++drains_begun_; }
  void end_drain() { drains_ended_ = drains_begun_; }

  bool is_live(std::uint32_t entry) const {
    return entry < records_.size() && records_[entry].live;
  }
  bool is_current(EntryId id) const {
    return is_live(id.entry) && records_[id.entry].generation == id.generation;
  }
  Record& record(std::uint32_t entry) { return records_[entry]; }
  Block* block(std::uint64_t ticket);
  void discard(Block& block);

  Arena& arena() { return arena_; }
  Lanes& lanes() { return lanes_; }
  bool empty() const { return live_.empty(); }
  std::size_t live_entries() const { return live_.size(); }
  const std::vector<std::uint32_t>& live() const { return live_; }
  std::byte* bytes_of(const Block& block) const { return data_ + block.extent.offset; }

  /// Words that somebody sleeps on and that have changed, to be woken outside of any lock.
  std::vector<const std::atomic<std::uint32_t>*> take_wakes() { return std::move(wakes_); }

 private:
  void set_phase(Record& record, Record::Phase phase);
  void make_ready(std::uint32_t entry, const Block& block);
  void make_stream(std::uint32_t entry, const std::shared_ptr<OpenFile>& file, std::uint64_t bytes);
  void detach(std::uint32_t entry);
  void forget_content(const Block& block);
  bool is_shareable(const Block& block) const;
  void end_stream(std::uint32_t head);
  void free_entry(std::uint32_t entry);
  void sweep_some(std::deque<EntryId>& published, std::size_t look_past);
  bool sweep_entry(std::uint32_t entry);
  void top_up_streams();
  bool may_be_seen_by_a_child(Record& record, EntryWord word) const;
  bool evict(Block& block);
  Block* needed_last(double due);
  void wake_if_waited(std::uint32_t entry, EntryWord before);

  ControlLayout& control_;
  std::byte* data_;
  IndexWriter index_;
  Arena arena_;
  Lanes lanes_;
  std::deque<Record> records_;  // by entry, as far as any was ever used
  std::vector<std::uint32_t> live_;
  std::vector<std::uint32_t> stream_heads_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Block>> blocks_;  // by ticket
  struct ContentHash {
    std::size_t operator()(const Hash128& name) const { return name[0]; }
  };
  std::unordered_map<Hash128, Block*, ContentHash> by_content_;
  std::uint64_t next_ticket_ = 1;
  std::uint64_t drains_begun_ = 0, drains_ended_ = 0;
  std::vector<const std::atomic<std::uint32_t>*> wakes_;
};

}  // namespace prisma
