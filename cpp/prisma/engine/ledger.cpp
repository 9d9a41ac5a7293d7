#include "prisma/engine/ledger.h"

#include <algorithm>
#include <utility>

#include "prisma/base/units.h"
#include "prisma/buffer/sample_name.h"

namespace prisma {
namespace {

constexpr std::uint32_t kStreamWindow = 32;  // chunks of one stream, published and not given back

void add(std::atomic<std::uint64_t>& counter, std::uint64_t count = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

/// At least 16 chunks share the buffer, of at most 4 MiB each.
std::uint64_t chunk_bytes_for(std::uint64_t budget_bytes) {
  return std::clamp(budget_bytes / 16 / kPage * kPage, kPage, 4_MiB);
}

}  // namespace

Ledger::Ledger(ControlLayout& control, std::byte* data, Arena::Punch punch)
    : control_(control),
      data_(data),
      index_(control),
      arena_(control.header.data_bytes, std::move(punch)) {}

std::optional<std::uint32_t> Ledger::publish(Lane& lane, Place place, const Hash128& name,
                                             Sample sample) {
  const auto entry = index_.publish(name, lane.number);
  if (!entry) return {};
  while (records_.size() <= *entry) records_.emplace_back();
  Record& record = records_[*entry];
  record = Record{};
  record.live = true;
  record.generation =
      unpack(control_.entries[*entry].word.load(std::memory_order_relaxed)).generation;
  record.lane = &lane;
  record.place = place;
  record.content = place.chunk > 0 ? name
                                   : name_by_path(control_.header.hash_key, 0, sample.path,
                                                  sample.offset, sample.length);
  record.sample = std::move(sample);
  record.live_at = live_.size();
  live_.push_back(*entry);
  ++lane.live;
  lane.queued.emplace(place, *entry);
  if (place.chunk == 0) lane.published.push_back({*entry, record.generation});
  return entry;
}

void Ledger::set_phase(Record& record, Record::Phase phase) {
  Lane& lane = *record.lane;
  if (record.phase == Record::Phase::kReading) --lane.reading;
  if (record.phase == Record::Phase::kReady) --lane.ready;
  if (record.phase == Record::Phase::kQueued) lane.queued.erase(record.place);
  record.phase = phase;
  if (phase == Record::Phase::kReading) ++lane.reading;
  if (phase == Record::Phase::kReady) ++lane.ready;
}

Block* Ledger::start(std::uint32_t entry) {
  Record& record = records_[entry];
  if (!change(control_.entries[entry], entry_engine::start)) {
    set_phase(record, Record::Phase::kConsumed);  // its consumer reads it directly: swept soon
    return nullptr;
  }
  set_phase(record, Record::Phase::kReading);
  const auto known = by_content_.find(record.content);
  if (known != by_content_.end() && !is_shareable(*known->second)) {
    forget_content(*known->second);
  } else if (known != by_content_.end()) {
    Block& shared = *known->second;
    record.block = &shared;
    shared.entries.push_back(entry);
    add(control_.header.counters.shared);
    if (shared.phase == Block::Phase::kReady) make_ready(entry, shared);
    return nullptr;
  }
  auto block = std::make_unique<Block>();
  block->ticket = next_ticket_++;
  block->content = record.content;
  block->entries.push_back(entry);
  if (record.head) block->file = records_[*record.head].stream->file;
  record.block = block.get();
  by_content_.emplace(record.content, block.get());
  return blocks_.emplace(block->ticket, std::move(block)).first->second.get();
}

/// A block that is only held by consumers may have been read long ago: its file may be another now.
bool Ledger::is_shareable(const Block& block) const {
  if (block.phase != Block::Phase::kReady) return true;
  return std::any_of(block.entries.begin(), block.entries.end(), [this](std::uint32_t entry) {
    return unpack(control_.entries[entry].word.load(std::memory_order_acquire)).state ==
           EntryState::kReady;
  });
}

bool Ledger::place(Block& block, std::uint64_t bytes) {
  give_room_back(block);
  const auto extent = arena_.reserve(bytes);
  if (extent) block.extent = *extent;
  return extent.has_value();
}

void Ledger::give_room_back(Block& block) { arena_.give_back(std::exchange(block.extent, {})); }

void Ledger::finish(Block& block, EntryKind kind, std::uint64_t bytes, std::int32_t error_number) {
  block.phase = Block::Phase::kReady;
  block.kind = kind;
  block.bytes = bytes;
  block.error_number = error_number;
  block.file.reset();
  if (kind != EntryKind::kBytes) {
    give_room_back(block);
    forget_content(block);  // who wants it next tries anew
  }
  for (const std::uint32_t entry : block.entries) make_ready(entry, block);
  if (block.entries.empty()) discard(block);
}

void Ledger::make_ready(std::uint32_t entry, const Block& block) {
  Entry& shared = control_.entries[entry];
  shared.kind.store(block.kind, std::memory_order_relaxed);
  shared.error_number.store(block.error_number, std::memory_order_relaxed);
  shared.offset.store(block.extent.offset, std::memory_order_relaxed);
  shared.length.store(block.bytes, std::memory_order_relaxed);
  set_phase(records_[entry], Record::Phase::kReady);
  if (const auto before = change(shared, entry_engine::finish)) wake_if_waited(entry, *before);
}

void Ledger::finish_as_stream(Block& block, std::shared_ptr<OpenFile> file, std::uint64_t bytes) {
  const std::vector<std::uint32_t> entries = std::move(block.entries);
  block.entries.clear();
  discard(block);
  for (const std::uint32_t entry : entries) {
    records_[entry].block = nullptr;
    make_stream(entry, file, bytes);
  }
}

void Ledger::make_stream(std::uint32_t entry, const std::shared_ptr<OpenFile>& file,
                         std::uint64_t bytes) {
  Record& record = records_[entry];
  record.stream = std::make_unique<Stream>();
  record.stream->file = file;
  record.stream->bytes = bytes;
  record.stream->chunk_bytes = chunk_bytes_for(arena_.budget_bytes());
  stream_heads_.push_back(entry);
  top_up(entry);
  Entry& shared = control_.entries[entry];
  shared.kind.store(EntryKind::kStream, std::memory_order_relaxed);
  shared.error_number.store(static_cast<std::int32_t>(record.stream->chunk_bytes),
                            std::memory_order_relaxed);
  shared.offset.store(static_cast<std::uint64_t>(file->stamp.changed_ns),
                      std::memory_order_relaxed);
  shared.length.store(bytes, std::memory_order_relaxed);
  set_phase(record, Record::Phase::kReady);
  add(control_.header.counters.streams);
  if (const auto before = change(shared, entry_engine::finish)) wake_if_waited(entry, *before);
}

void Ledger::top_up(std::uint32_t head) {
  Record& record = records_[head];
  Stream& stream = *record.stream;
  while (stream.outstanding < kStreamWindow &&
         stream.next_chunk * stream.chunk_bytes < stream.bytes) {
    const std::uint64_t start = stream.next_chunk * stream.chunk_bytes;
    const Hash128 name =
        name_of_chunk(control_.header.hash_key, head, record.generation, stream.next_chunk);
    Sample range{record.sample.path, record.sample.offset + start,
                 std::min(stream.chunk_bytes, stream.bytes - start)};
    const Place place{record.place.position, stream.next_chunk + 1};
    const auto entry = publish(*record.lane, place, name, std::move(range));
    if (!entry) return;
    records_[*entry].head = head;
    stream.published.push_back({*entry, records_[*entry].generation});
    ++stream.next_chunk;
    ++stream.outstanding;
  }
}

bool Ledger::evict_for(std::uint64_t bytes, double due) {
  while (true) {
    if (const auto extent = arena_.reserve(bytes)) {
      arena_.give_back(*extent);
      return true;
    }
    Block* victim = needed_last(due);
    if (victim == nullptr || !evict(*victim)) return false;
  }
}

Block* Ledger::needed_last(double due) {
  Block* last = nullptr;
  double last_due = due;
  std::uint64_t last_chunk = 0;
  for (const auto& [ticket, block] : blocks_) {
    if (block->phase != Block::Phase::kReady || block->extent.bytes == 0) continue;
    if (block->entries.empty()) continue;
    double soonest = 0;
    std::uint64_t chunk = 0;
    bool evictable = true;
    bool first = true;
    for (const std::uint32_t entry : block->entries) {
      const Record& record = records_[entry];
      const EntryWord word = unpack(control_.entries[entry].word.load(std::memory_order_acquire));
      evictable = evictable && entry_engine::evict(word).has_value();
      const double when = lanes_.due(*record.lane, record.place);
      if (first || when < soonest) soonest = when;
      chunk = record.place.chunk;
      first = false;
    }
    const bool later = soonest > last_due || (soonest == last_due && chunk > last_chunk);
    if (evictable && later) {
      last = block.get();
      last_due = soonest;
      last_chunk = chunk;
    }
  }
  return last;
}

bool Ledger::evict(Block& block) {
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t entry : block.entries) {
    if (!change(control_.entries[entry], entry_engine::evict)) {
      kept.push_back(entry);  // taken this very moment
      continue;
    }
    Record& record = records_[entry];
    set_phase(record, Record::Phase::kQueued);
    record.lane->queued.emplace(record.place, entry);
    record.block = nullptr;
    add(control_.header.counters.rereads);
  }
  block.entries = std::move(kept);
  if (!block.entries.empty()) return false;
  discard(block);
  return true;
}

void Ledger::drop(std::uint32_t entry) {
  const auto before = change(control_.entries[entry], entry_engine::drop);
  if (!before) return;  // held by a consumer, or given back: the sweep frees it
  wake_if_waited(entry, *before);
  free_entry(entry);
}

void Ledger::detach(std::uint32_t entry) {
  Record& record = records_[entry];
  Block* block = std::exchange(record.block, nullptr);
  if (block == nullptr) return;
  std::erase(block->entries, entry);
  // One that is being read is discarded when its read ends.
  if (block->entries.empty() && block->phase != Block::Phase::kReading) discard(*block);
}

void Ledger::discard(Block& block) {
  give_room_back(block);
  forget_content(block);
  blocks_.erase(block.ticket);
}

void Ledger::forget_content(const Block& block) {
  const auto known = by_content_.find(block.content);
  if (known != by_content_.end() && known->second == &block) by_content_.erase(known);
}

void Ledger::free_entry(std::uint32_t entry) {
  Record& record = records_[entry];
  Lane& lane = *record.lane;
  set_phase(record, Record::Phase::kConsumed);
  detach(entry);
  record.live = false;
  live_[record.live_at] = live_.back();
  records_[live_.back()].live_at = record.live_at;
  live_.pop_back();
  index_.remove(entry);
  --lane.live;
  if (record.head) --records_[*record.head].stream->outstanding;
  if (record.stream) end_stream(entry);
}

void Ledger::end_stream(std::uint32_t head) {
  const std::deque<EntryId> chunks = std::move(records_[head].stream->published);
  records_[head].stream.reset();
  std::erase(stream_heads_, head);
  for (const EntryId& chunk : chunks) {
    if (!is_current(chunk)) continue;
    records_[chunk.entry].head.reset();
    drop(chunk.entry);
  }
}

void Ledger::sweep() {
  constexpr std::size_t kLookPast = 8;
  for (const auto& lane : lanes_.all()) sweep_some(lane->published, kLookPast + lane->reordering);
  for (const std::uint32_t head : stream_heads_) {
    sweep_some(records_[head].stream->published, kStreamWindow);
  }
  top_up_streams();
}

void Ledger::sweep_all() {
  // Backwards, since freeing an entry moves the last one into its place.
  for (std::size_t at = live_.size(); at-- > 0;) {
    if (at < live_.size()) sweep_entry(live_[at]);
  }
  top_up_streams();
  lanes_.remove_ended();
}

/// Until so many in a row were not taken.
void Ledger::sweep_some(std::deque<EntryId>& published, std::size_t look_past) {
  std::size_t untaken = 0;
  for (std::size_t at = 0; at < published.size() && untaken < look_past; ++at) {
    if (!is_current(published[at])) continue;
    untaken = sweep_entry(published[at].entry) ? 0 : untaken + 1;
  }
  while (!published.empty() && !is_current(published.front())) published.pop_front();
}

void Ledger::top_up_streams() {
  for (const std::uint32_t head : stream_heads_) {
    if (records_[head].stream->outstanding < kStreamWindow / 2) top_up(head);
  }
}

/// Whether somebody has taken it.
bool Ledger::sweep_entry(std::uint32_t entry) {
  Record& record = records_[entry];
  const EntryWord word = unpack(control_.entries[entry].word.load(std::memory_order_acquire));
  if (word.state == EntryState::kTaken || word.state == EntryState::kDone) {
    if (record.phase != Record::Phase::kConsumed) {
      set_phase(record, Record::Phase::kConsumed);
      if (record.place.chunk == 0) record.lane->note_taken(record.place.position);
    }
    if (word.state == EntryState::kDone && !may_be_seen_by_a_child(record, word) &&
        change(control_.entries[entry], entry_engine::reclaim)) {
      free_entry(entry);
    }
    return true;
  }
  if (word.state == EntryState::kFree || word.state > EntryState::kDone) {
    // No step leads here: a client wrote over it. That costs this entry, and nothing else.
    control_.entries[entry].word.store(pack({.generation = record.generation}));
    wakes_.push_back(control_.entries[entry].futex());
    free_entry(entry);
    return true;
  }
  if (record.place.chunk == 0 && record.lane->is_stale(record.place.position)) {
    add(control_.header.counters.stale);
    drop(entry);
  }
  return false;
}

bool Ledger::may_be_seen_by_a_child(Record& record, EntryWord word) const {
  if (!word.pinned) return false;
  if (record.pins > 0 || !record.pin_seen) return true;
  if (record.free_after_drain == 0) record.free_after_drain = drains_begun_ + 1;
  return drains_ended_ < record.free_after_drain;
}

void Ledger::cancel(Lane& lane) {
  lane.cancelled = true;
  for (std::size_t at = live_.size(); at-- > 0;) {
    if (at >= live_.size()) continue;
    const std::uint32_t entry = live_[at];
    if (records_[entry].lane != &lane) continue;
    if (records_[entry].phase != Record::Phase::kConsumed) add(control_.header.counters.cancelled);
    drop(entry);
  }
  lanes_.remove_ended();
}

void Ledger::client_gone(ClientId client) {
  for (Lane* lane : lanes_.of(client)) {
    if (!lane->cancelled) cancel(*lane);
  }
  for (std::size_t at = live_.size(); at-- > 0;) {
    if (at >= live_.size()) continue;
    const std::uint32_t entry = live_[at];
    Record& record = records_[entry];
    const EntryWord word = unpack(control_.entries[entry].word.load(std::memory_order_acquire));
    if (word.client != client) continue;
    if (word.state == EntryState::kTaken && record.pins > 0) {
      // A child still sees it: from now on it waits only for that.
      change(control_.entries[entry],
             [client](EntryWord now) { return entry_client::give_back(now, client); });
      continue;
    }
    record.pin_seen = true;  // no pin of a dead client can still come
    const auto freed = change(control_.entries[entry], [client](EntryWord now) {
      return entry_engine::reclaim_from_dead(now, client);
    });
    if (freed) free_entry(entry);
  }
}

std::optional<EntryId> Ledger::pin(ClientId client, std::uint32_t entry) {
  if (!is_live(entry)) return {};
  const EntryWord word = unpack(control_.entries[entry].word.load(std::memory_order_acquire));
  const bool held = word.state == EntryState::kTaken || word.state == EntryState::kDone;
  if (!held || word.client != client || !word.pinned) return {};
  Record& record = records_[entry];
  record.pin_seen = true;
  ++record.pins;
  return EntryId{entry, record.generation};
}

void Ledger::unpin(const EntryId& pinned) {
  if (is_current(pinned)) --records_[pinned.entry].pins;
}

Block* Ledger::block(std::uint64_t ticket) {
  const auto found = blocks_.find(ticket);
  return found == blocks_.end() ? nullptr : found->second.get();
}

void Ledger::wake_if_waited(std::uint32_t entry, EntryWord before) {
  if (before.waited) wakes_.push_back(control_.entries[entry].futex());
}

}  // namespace prisma
