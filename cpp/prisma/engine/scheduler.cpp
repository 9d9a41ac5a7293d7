#include "prisma/engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "prisma/base/futex.h"
#include "prisma/base/units.h"
#include "prisma/buffer/sample_name.h"

namespace prisma {
namespace {

constexpr int kFastReads = 64, kSlowReadCosts = 32;

void add(std::atomic<std::uint64_t>& counter, std::uint64_t count = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

}  // namespace

/// A turn with the lock; whoever it made wait no longer is woken after it.
class Scheduler::Turn {
 public:
  explicit Turn(Scheduler& scheduler) : scheduler_(scheduler), lock_(scheduler.mutex_) {}
  ~Turn() {
    scheduler_.update_gauges();
    const auto wakes = scheduler_.ledger_.take_wakes();
    lock_.unlock();
    for (const auto* word : wakes) futex_wake_all(word);
  }
  Turn(const Turn&) = delete;
  std::unique_lock<BriefMutex>& lock() { return lock_; }

 private:
  Scheduler& scheduler_;
  std::unique_lock<BriefMutex> lock_;
};

Scheduler::Scheduler(ControlLayout& control, std::byte* data, Arena::Punch punch,
                     std::uint64_t depth)
    : control_(control), depth_(depth), ledger_(control, data, std::move(punch)) {
  control_.header.depth.store(depth, std::memory_order_relaxed);
  control_.header.wake_at.store(kNeverWake);
}

void Scheduler::announce(ClientId client, std::uint64_t session, const wire::Announce& announce) {
  const Turn turn(*this);
  sweep();
  Lane* lane = ledger_.lanes().find_or_add(client, announce.plan, announce.lane, session);
  if (lane == nullptr) return;
  set_aside(*lane, lane->fast_reads >= kFastReads);
  const HashKey& key = control_.header.hash_key;
  std::uint64_t position = announce.first_position;
  for (const Sample& sample : announce.samples) {
    const Hash128 name =
        announce.named_by == wire::NamedBy::kPath
            ? name_by_path(key, session, sample.path, sample.offset, sample.length)
            : name_by_position(key, client, announce.plan, announce.lane, position);
    if (!ledger_.publish(*lane, {position++, 0}, name, sample)) break;
  }
  changed_.notify_one();
}

void Scheduler::demand(const wire::Demand& demand) {
  const Turn turn(*this);
  if (!ledger_.is_current({demand.entry, demand.generation})) return;
  const Record& record = ledger_.record(demand.entry);
  if (record.phase == Record::Phase::kQueued) demanded_.push_back(demand);
  if (record.block != nullptr) {
    record.block->demanded = true;
    if (record.block->phase == Block::Phase::kParked) place_parked();
  }
  changed_.notify_one();
}

void Scheduler::resume(const wire::Resume& resume) {
  const Turn turn(*this);
  if (!ledger_.is_live(resume.entry)) return;
  Lane& lane = *ledger_.record(resume.entry).lane;
  lane.fast_reads = 0;
  set_aside(lane, false);
  changed_.notify_one();
}

void Scheduler::cancel(ClientId client, const wire::Cancel& cancel) {
  const Turn turn(*this);
  for (Lane* lane : ledger_.lanes().of(client)) {
    const bool meant = cancel.lane == UINT32_MAX || cancel.lane == lane->lane;
    if (lane->plan == cancel.plan && meant && !lane->cancelled) ledger_.cancel(*lane);
  }
  place_parked();
  changed_.notify_one();
}

void Scheduler::client_gone(ClientId client) {
  const Turn turn(*this);
  ledger_.client_gone(client);
  place_parked();
  changed_.notify_one();
}

std::vector<EntryId> Scheduler::pin(ClientId client, const wire::Pin& pin) {
  const Turn turn(*this);
  std::vector<EntryId> pinned;
  for (const std::uint32_t entry : pin.entries) {
    if (const auto known = ledger_.pin(client, entry)) pinned.push_back(*known);
  }
  return pinned;
}

void Scheduler::unpin(const std::vector<EntryId>& entries) {
  const Turn turn(*this);
  for (const EntryId& entry : entries) ledger_.unpin(entry);
  place_parked();
  changed_.notify_one();
}

void Scheduler::begin_drain() {
  const Turn turn(*this);
  ledger_.begin_drain();
}

void Scheduler::end_drain() {
  const Turn turn(*this);
  ledger_.end_drain();
}

void Scheduler::tune(const wire::Tune& tune) {
  const Turn turn(*this);
  if (tune.depth > 0) depth_.store(tune.depth, std::memory_order_relaxed);
  if (tune.buffer_bytes > 0) ledger_.arena().set_budget(tune.buffer_bytes);
  control_.header.depth.store(depth(), std::memory_order_relaxed);
  place_parked();
  changed_.notify_all();
}

void Scheduler::look_around() {
  const Turn turn(*this);
  sweep();
  place_parked();
  changed_.notify_one();
}

void Scheduler::tick(double seconds) {
  constexpr int kTicksOfRest = 5;
  const Turn turn(*this);
  ledger_.sweep_all();
  place_parked();
  changed_.notify_all();
  ledger_.lanes().measure(seconds);
  count_extra_readers();
  ticks_at_rest_ = ledger_.empty() && in_flight_ == 0 ? ticks_at_rest_ + 1 : 0;
  if (ticks_at_rest_ == kTicksOfRest) ledger_.arena().punch_free();
}

std::optional<Read> Scheduler::next(std::stop_token stop, std::size_t reader) {
  Turn turn(*this);
  std::optional<Read> picked;
  changed_.wait(turn.lock(), stop, [&] {
    if (reader >= readers()) return true;
    picked = pick_for(reader);
    return picked.has_value();
  });
  // One wakes the next: as many work as find something, and no more.
  if (!picked || in_flight_ < depth()) changed_.notify_one();
  return picked;
}

std::optional<Read> Scheduler::pick_for(std::size_t reader) {
  return reader < depth() ? pick() : pick_demanded();
}

std::optional<Read> Scheduler::pick() {
  if (auto read = pick_placed()) return read;
  if (auto read = pick_demanded()) return read;
  if (in_flight_ >= depth()) return {};
  return pick_ahead();
}

std::optional<Read> Scheduler::pick_placed() {
  while (!placed_.empty()) {
    Block* block = ledger_.block(placed_.front());
    placed_.pop_front();
    if (block != nullptr) return hand_out(*block);
  }
  return {};
}

std::optional<Read> Scheduler::pick_demanded() {
  while (!demanded_.empty()) {
    const wire::Demand demand = demanded_.front();
    demanded_.pop_front();
    if (!ledger_.is_current({demand.entry, demand.generation})) continue;
    if (ledger_.record(demand.entry).phase != Record::Phase::kQueued) continue;
    auto read = begin(demand.entry);
    Block* block = ledger_.record(demand.entry).block;
    if (block != nullptr) block->demanded = true;
    if (read) return read;
  }
  return {};
}

std::optional<Read> Scheduler::pick_ahead() {
  const bool is_short = short_of_room();
  while (Lane* lane = ledger_.lanes().most_urgent(is_short)) {
    if (auto read = begin(lane->queued.begin()->second)) return read;
  }
  return {};
}

std::optional<Read> Scheduler::begin(std::uint32_t entry) {
  Block* block = ledger_.start(entry);
  if (block == nullptr) return {};
  return hand_out(*block);
}

Read Scheduler::hand_out(Block& block) {
  const Sample& sample = ledger_.record(block.entries.front()).sample;
  Read read{block.ticket, sample, block.file, nullptr,
            ledger_.record(block.entries.front()).head.has_value()};
  if (block.phase == Block::Phase::kPlaced) read.to = ledger_.bytes_of(block);
  block.phase = Block::Phase::kReading;
  ++in_flight_;
  return read;
}

std::byte* Scheduler::room(Read& read, std::uint64_t bytes) {
  const Turn turn(*this);
  Block* block = ledger_.block(read.ticket);
  if (block == nullptr || block->entries.empty()) {  // cancelled meanwhile
    --in_flight_;
    if (block != nullptr) ledger_.discard(*block);
    return nullptr;
  }
  if (bytes > ledger_.arena().budget_bytes() / 4 && !read.chunk) {
    --in_flight_;
    ledger_.finish_as_stream(*block, read.file, bytes);
    return nullptr;
  }
  mean_bytes_ = mean_bytes_ == 0 ? static_cast<double>(bytes)
                                 : 0.9 * mean_bytes_ + 0.1 * static_cast<double>(bytes);
  if (make_room(*block, bytes)) return ledger_.bytes_of(*block);
  return park_or_refuse(*block, read, bytes);
}

/// Ends a read that found no room: it waits for some, with its file open; but nobody waits with it.
std::byte* Scheduler::park_or_refuse(Block& block, Read& read, std::uint64_t bytes) {
  --in_flight_;
  if (block.entries.empty()) {  // nobody wants it since the last sweep
    ledger_.discard(block);
    return nullptr;
  }
  block.phase = Block::Phase::kParked;
  block.file = read.file;
  block.wanted_bytes = bytes;
  if (block.demanded) {
    refuse(block);
  } else {
    parked_.push_back(block.ticket);
    waiting_for_room_ = true;
    ask_to_be_woken();
  }
  return nullptr;
}

bool Scheduler::make_room(Block& block, std::uint64_t bytes) {
  sweep_if_worth_it();
  if (ledger_.place(block, bytes)) return true;
  sweep();
  if (ledger_.place(block, bytes)) return true;
  const auto due = due_if_it_may_evict(block);
  return due && ledger_.evict_for(bytes, *due) && ledger_.place(block, bytes);
}

/// Only what somebody waits for, or the head of a lane that has nothing ready, may evict: then,
/// when it is due, in the lanes' time. Nothing: it has to wait for room.
std::optional<double> Scheduler::due_if_it_may_evict(const Block& block) {
  std::optional<double> soonest;
  for (const std::uint32_t entry : block.entries) {
    const Record& record = ledger_.record(entry);
    const bool is_head = record.lane->ready == 0 && record.place.chunk <= 1 &&
                         record.place.position <= record.lane->frontier;
    if (!block.demanded && !is_head) continue;
    const double due = block.demanded ? -1 : ledger_.lanes().due(*record.lane, record.place);
    soonest = std::min(due, soonest.value_or(due));
  }
  return soonest;
}

void Scheduler::place_parked() {
  std::deque<std::uint64_t> still;
  for (const std::uint64_t ticket : std::exchange(parked_, {})) {
    Block* block = ledger_.block(ticket);
    if (block == nullptr || block->phase != Block::Phase::kParked) continue;
    // Making room sweeps, which may end all that wants this block, but must not discard it now.
    block->phase = Block::Phase::kReading;
    const bool may_have_room = still.empty() || block->demanded;
    const bool has_room = may_have_room && make_room(*block, block->wanted_bytes);
    if (block->entries.empty()) {
      ledger_.discard(*block);
    } else if (has_room) {
      block->phase = Block::Phase::kPlaced;
      placed_.push_back(ticket);
    } else if (block->demanded) {
      refuse(*block);
    } else {
      block->phase = Block::Phase::kParked;
      still.push_back(ticket);
    }
  }
  parked_ = std::move(still);
  if (!parked_.empty()) ask_to_be_woken();
}

void Scheduler::refuse(Block& block) {
  add(control_.header.counters.refused);
  ledger_.finish(block, EntryKind::kRefused, 0, 0);
}

bool Scheduler::short_of_room() {
  Arena& arena = ledger_.arena();
  const auto fits = [&] { return static_cast<double>(arena.free_bytes()) >= mean_bytes_; };
  if (parked_.empty() && !waiting_for_room_ && fits()) return false;
  sweep();
  const bool enough = arena.free_bytes() >= arena.budget_bytes() / 8 && fits();
  waiting_for_room_ = !parked_.empty() || !enough;
  if (waiting_for_room_) ask_to_be_woken();
  return waiting_for_room_;
}

/// Has the release that crosses the low-water mark ring. Counted from before the sweep, so that
/// what is given back during it brings the ring nearer; a ring lost all the same costs one tick.
void Scheduler::ask_to_be_woken() {
  const std::uint64_t before = control_.header.released_bytes.load();
  sweep();
  Arena& arena = ledger_.arena();
  std::uint64_t mark = arena.budget_bytes() / 8;
  if (!parked_.empty()) {
    if (const Block* block = ledger_.block(parked_.front())) {
      mark = std::max(mark, whole_pages(block->wanted_bytes));
    }
  }
  const std::uint64_t there = arena.free_bytes();
  control_.header.wake_at.store(before + std::max(kPage, mark > there ? mark - there : 0));
}

void Scheduler::done(const Read& read, const Outcome& outcome, ReadTimes times) {
  const Turn turn(*this);
  --in_flight_;
  EngineCounters& counters = control_.header.counters;
  add(counters.open_ns, static_cast<std::uint64_t>(times.open_ns));
  add(counters.read_ns, static_cast<std::uint64_t>(times.read_ns));
  if (Block* block = ledger_.block(read.ticket)) {
    for (const std::uint32_t entry : block->entries) {
      note_speed(*ledger_.record(entry).lane, *block, times.waited);
    }
    if (const auto* bytes = std::get_if<BytesRead>(&outcome)) {
      add(counters.reads);
      add(counters.read_bytes, bytes->bytes);
      ledger_.finish(*block, EntryKind::kBytes, bytes->bytes, 0);
    } else if (const auto* error = std::get_if<ErrorNumber>(&outcome)) {
      add(counters.failures);
      ledger_.finish(*block, EntryKind::kFailed, 0, error->value);
    } else {
      refuse(*block);
    }
  }
}

/// Large samples are no reason to step aside: read directly, they would lie in memory of the
/// consumer's, beside the budget.
void Scheduler::note_speed(Lane& lane, const Block& block, bool waited) {
  const bool slow = waited || block.extent.bytes > kMostAsideBytes;
  lane.fast_reads = slow ? std::max(lane.fast_reads - kSlowReadCosts, 0)
                         : std::min(lane.fast_reads + 1, kFastReads);
  if (lane.fast_reads == kFastReads) set_aside(lane, true);
  if (lane.fast_reads == 0) set_aside(lane, false);
}

void Scheduler::set_aside(Lane& lane, bool aside) {
  if (lane.aside == aside) return;
  lane.aside = aside;
  LaneSlot& slot = control_.lanes[lane.number];
  slot.slow_reads.store(0, std::memory_order_relaxed);
  slot.spent_ns.store(0, std::memory_order_relaxed);
  slot.expected_ns.store(0, std::memory_order_relaxed);
  slot.aside.store(aside ? 1 : 0, std::memory_order_release);
}

/// Called now and then: what is demanded and not yet begun has found all readers busy.
void Scheduler::count_extra_readers() {
  constexpr std::uint64_t kMostExtra = 256;
  std::uint64_t waiting = 0;
  for (const wire::Demand& demand : demanded_) {
    if (!ledger_.is_current({demand.entry, demand.generation})) continue;
    if (ledger_.record(demand.entry).phase == Record::Phase::kQueued) ++waiting;
  }
  const std::uint64_t extra = extra_.load(std::memory_order_relaxed);
  if (waiting > 0) {
    extra_.store(std::min(extra + waiting, kMostExtra), std::memory_order_relaxed);
  } else if (in_flight_ <= depth()) {
    extra_.store(0, std::memory_order_relaxed);
  }
}

void Scheduler::retried() {
  const Turn turn(*this);
  add(control_.header.counters.retries);
}

void Scheduler::sweep() {
  swept_at_bytes_ = control_.header.released_bytes.load(std::memory_order_relaxed);
  ledger_.sweep();
}

/// Room that was just given back is better than room that was never used: it has pages already, and
/// these lie in the processor's cache.
void Scheduler::sweep_if_worth_it() {
  constexpr std::uint64_t kWorthBytes = 1_MiB;
  const auto released = control_.header.released_bytes.load(std::memory_order_relaxed);
  if (released - swept_at_bytes_ >= kWorthBytes) sweep();
}

void Scheduler::update_gauges() {
  EngineCounters& counters = control_.header.counters;
  counters.used_bytes.store(ledger_.arena().used_bytes(), std::memory_order_relaxed);
  counters.given_back_bytes.store(ledger_.arena().punched_bytes(), std::memory_order_relaxed);
  counters.in_flight.store(in_flight_, std::memory_order_relaxed);
  counters.parked.store(parked_.size(), std::memory_order_relaxed);
  counters.lanes.store(ledger_.lanes().all().size(), std::memory_order_relaxed);
  control_.header.buffer_bytes.store(ledger_.arena().budget_bytes(), std::memory_order_relaxed);
  if (in_flight_ > counters.most_in_flight.load(std::memory_order_relaxed)) {
    counters.most_in_flight.store(in_flight_, std::memory_order_relaxed);
  }
}

}  // namespace prisma
