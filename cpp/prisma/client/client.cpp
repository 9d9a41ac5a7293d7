#include "prisma/client/client.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "prisma/base/futex.h"
#include "prisma/buffer/sample_name.h"
#include "prisma/client/direct.h"

namespace prisma {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookAfter = std::chrono::milliseconds(100);

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

std::uint64_t ns_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

/// What a direct read takes when the page cache has it, as a generous guess: 15 us and 4 GB/s.
std::uint64_t cached_read_ns(std::uint64_t bytes) { return 15'000 + bytes / 4; }

void note_direct_read(LaneSlot& lane, std::uint64_t spent_ns, std::uint64_t bytes) {
  const std::uint64_t expected_ns = cached_read_ns(bytes);
  lane.spent_ns.fetch_add(spent_ns, std::memory_order_relaxed);
  lane.expected_ns.fetch_add(expected_ns, std::memory_order_relaxed);
  if (spent_ns > 3 * expected_ns) lane.slow_reads.fetch_add(1, std::memory_order_relaxed);
}

/// Whether reads wait for storage again. A few slow ones may have been none of storage's doing:
/// together they must have cost more than all others. Forgets bit by bit.
bool has_become_slow(LaneSlot& lane) {
  constexpr std::uint32_t kSlowReads = 3;
  constexpr std::uint64_t kMemoryNs = 20'000'000;
  const std::uint64_t spent_ns = lane.spent_ns.load(std::memory_order_relaxed);
  const std::uint64_t expected_ns = lane.expected_ns.load(std::memory_order_relaxed);
  if (lane.slow_reads.load(std::memory_order_relaxed) >= kSlowReads && spent_ns > 2 * expected_ns) {
    return true;
  }
  if (expected_ns > kMemoryNs) {
    lane.spent_ns.store(spent_ns / 2, std::memory_order_relaxed);
    lane.expected_ns.store(expected_ns / 2, std::memory_order_relaxed);
    lane.slow_reads.store(lane.slow_reads.load(std::memory_order_relaxed) / 2,
                          std::memory_order_relaxed);
  }
  return false;
}

}  // namespace

Client::Client(Fd socket, std::uint64_t session, std::function<void()> check)
    : while_waiting_(std::move(check)),
      attachment_(std::make_shared<Attachment>(std::move(socket), session, while_waiting_)) {}

void Client::announce(std::uint32_t plan, std::uint32_t lane, wire::NamedBy named_by,
                      std::uint64_t first_position, const std::vector<Sample>& samples) {
  attachment_->check_user();
  if (!is_ours()) return;
  constexpr std::size_t kRoom = wire::kMostBytes - 64;
  wire::Announce message{plan, lane, named_by, first_position, {}};
  std::size_t bytes = 0;
  const auto flush = [&] {
    if (!message.samples.empty()) {
      announcements_.fetch_add(1);
      if (!attachment_->send(message)) lost_ = true;
    }
    message.first_position += message.samples.size();
    message.samples.clear();
    bytes = 0;
  };
  for (const Sample& sample : samples) {
    if (bytes + wire::encoded_bytes(sample) > kRoom) flush();
    bytes += wire::encoded_bytes(sample);
    message.samples.push_back(sample);
  }
  flush();
}

bool Client::first_to(Notice notice) {
  if (notice == Notice::kGathered) return !told_of_gathering_.exchange(true);
  return copied_.load(std::memory_order_relaxed) && !told_of_copy_.exchange(true);
}

void Client::settle() {
  if (!is_ours()) return;
  const std::uint32_t sent = announcements_.load();
  const auto& known = attachment_->slot().announced;
  Patience patience(attachment_->control().header.heartbeat);
  while (engine_lives()) {
    const std::uint32_t seen = known.load();
    if (static_cast<std::int32_t>(seen - sent) >= 0) return;
    futex_wait(&known, seen, kLookAfter);
    if (while_waiting_) while_waiting_();
    if (patience.is_over()) lost_ = true;
  }
}

void Client::cancel(std::uint32_t plan, std::uint32_t lane) {
  if (!is_ours()) return;
  if (!attachment_->send(wire::Cancel{plan, lane})) lost_ = true;
}

void Client::tune(std::uint64_t depth, std::uint64_t buffer_bytes) {
  if (!is_ours()) return;
  if (!attachment_->send(wire::Tune{depth, buffer_bytes})) lost_ = true;
}

Taken Client::take(std::uint32_t plan, std::uint32_t lane, std::uint64_t position,
                   const Sample& sample) {
  return take_named(name_by_position(attachment_->control().header.hash_key, attachment_->number(),
                                     plan, lane, position),
                    sample);
}

Hash128 Client::name_of(const Sample& sample) const {
  return name_by_path(attachment_->control().header.hash_key, attachment_->session(), sample.path,
                      sample.offset, sample.length);
}

Taken Client::take(const Sample& sample) { return take_named(name_of(sample), sample); }

std::optional<Taken> Client::take_if_planned(const Sample& sample) {
  if (!is_ours()) return {};
  return take_from_buffer(name_of(sample), sample);
}

Taken Client::take_named(const Hash128& name, const Sample& sample) {
  if (!is_ours()) return read_directly(sample);  // another thread of the parent's may have a lock
  if (auto taken = take_from_buffer(name, sample)) return std::move(*taken);
  count(attachment_->slot().unplanned);
  return direct(sample);
}

/// Nothing when it is not there to be taken, nor will be.
std::optional<Taken> Client::take_from_buffer(const Hash128& name, const Sample& sample) {
  ControlLayout& control = attachment_->control();
  bool waited = false;
  const auto start = Clock::now();
  while (true) {
    const std::uint32_t announced = attachment_->slot().announced.load();
    const auto found = find(control, name);
    if (!found) {
      if (await_announcement(announced) == Next::kTryAgain) continue;
      return {};
    }
    if (found->word.state == EntryState::kReady) {
      // The very word that was found: another generation is another sample.
      std::uint64_t raw = pack(found->word);
      const auto taken = entry_client::take(found->word, attachment_->number());
      if (!control.entries[found->entry].word.compare_exchange_strong(raw, pack(*taken))) continue;
      if (!waited) count(attachment_->slot().hits);
      if (waited) count(attachment_->slot().stall_ns, ns_since(start));
      return use(*found, sample);
    }
    if (!waited && found->word.state == EntryState::kQueued) {
      if (auto taken = read_aside(*found, sample)) return taken;
    }
    if (!waited) {
      const bool late = found->word.state == EntryState::kReading;
      count(late ? attachment_->slot().lates : attachment_->slot().misses);
    }
    waited = true;
    if (await(*found) == Next::kReadDirectly) return direct(sample);
  }
}

/// Reads what the engine has not started, where that is cheaper than having it read. Nothing: the
/// engine has to.
std::optional<Taken> Client::read_aside(const Found& found, const Sample& sample) {
  ControlLayout& control = attachment_->control();
  Entry& entry = control.entries[found.entry];
  LaneSlot& lane = control.lanes[entry.lane.load(std::memory_order_relaxed) % kLanes];
  if (lane.aside.load(std::memory_order_acquire) == 0) return {};
  if (has_become_slow(lane)) {
    if (!attachment_->send(wire::Resume{found.entry})) lost_ = true;
    return {};
  }
  const auto claim = [&] {
    std::uint64_t raw = pack(found.word);
    const auto mine = entry_client::read_it_itself(found.word, attachment_->number());
    return mine && entry.word.compare_exchange_strong(raw, pack(*mine));
  };
  const auto start = Clock::now();
  auto taken = read_small(sample, spare_, kMostAsideBytes, claim);
  if (!taken) return {};
  const std::uint64_t spent_ns = ns_since(start);
  const auto* bytes = std::get_if<Bytes>(&*taken);
  note_direct_read(lane, spent_ns, bytes ? bytes->view().size() : 0);
  count(attachment_->slot().asides);
  count(attachment_->slot().taken_bytes, bytes ? bytes->view().size() : 0);
  return taken;
}

/// What was announced here and has not arrived yet may be just what is wanted.
Client::Next Client::await_announcement(std::uint32_t seen) {
  if (lost_ || seen == announcements_.load()) return Next::kReadDirectly;
  Patience patience(attachment_->control().header.heartbeat);
  while (true) {
    futex_wait(&attachment_->slot().announced, seen, kLookAfter);
    if (attachment_->slot().announced.load() != seen) return Next::kTryAgain;
    if (while_waiting_) while_waiting_();
    if (!attachment_->engine_lives() || patience.is_over()) {
      lost_ = true;
      return Next::kReadDirectly;
    }
  }
}

/// Asks for an entry and sleeps until something about it changes.
Client::Next Client::await(const Found& found) {
  ControlLayout& control = attachment_->control();
  Entry& entry = control.entries[found.entry];
  const wire::Demand demand{found.entry, found.word.generation};
  Patience patience(control.header.heartbeat);
  while (true) {
    const auto before = change(entry, [&](EntryWord now) {
      return now.generation == found.word.generation ? entry_client::want(now) : NextWord{};
    });
    if (!before) return Next::kTryAgain;
    if (lost_ || !attachment_->send(demand)) {
      lost_ = true;
      return Next::kReadDirectly;
    }
    const auto wanted = static_cast<std::uint32_t>(pack(*entry_client::want(*before)));
    futex_wait(entry.futex(), wanted, kLookAfter);
    if (while_waiting_) while_waiting_();
    if (!attachment_->engine_lives() || patience.is_over()) {
      lost_ = true;
      return Next::kReadDirectly;
    }
  }
}

Taken Client::use(const Found& found, const Sample& sample) {
  const Entry& entry = attachment_->control().entries[found.entry];
  const EntryKind kind = entry.kind.load(std::memory_order_relaxed);
  if (kind == EntryKind::kBytes) return lease(found);
  if (kind == EntryKind::kStream) return stream(found, sample);
  const int error_number = entry.error_number.load(std::memory_order_relaxed);
  attachment_->give_back(found.entry, 0);
  if (kind == EntryKind::kFailed) return Failure{error_number, sample.path};
  return direct(sample);
}

/// In place, as long as the views that are held leave half of the buffer to reading ahead.
Taken Client::lease(const Found& found) {
  ControlLayout& control = attachment_->control();
  const Entry& entry = control.entries[found.entry];
  const std::uint64_t size = entry.length.load(std::memory_order_relaxed);
  const std::byte* start = attachment_->data() + entry.offset.load(std::memory_order_relaxed);
  count(attachment_->slot().taken_bytes, size);
  count(attachment_->slot().leased_bytes, size);
  const std::uint64_t held = control.header.leased_bytes.fetch_add(size) + size;
  Bytes bytes(attachment_, found.entry, {start, size});
  if (held <= control.header.buffer_bytes.load(std::memory_order_relaxed) / 2) return bytes;
  OwnMemory own({}, size);  // to be kept
  std::memcpy(own.data(), start, size);
  copied_.store(true, std::memory_order_relaxed);
  count(attachment_->slot().private_copies);
  count(attachment_->slot().private_bytes, size);
  return Bytes(std::move(own), size);
}

Taken Client::stream(const Found& found, const Sample& sample) {
  const Entry& head = attachment_->control().entries[found.entry];
  const auto chunk_bytes =
      static_cast<std::uint64_t>(head.error_number.load(std::memory_order_relaxed));
  const Large::Shape shape{head.length.load(std::memory_order_relaxed),
                           std::max<std::uint64_t>(chunk_bytes, 1)};
  return Large(Bytes(attachment_, found.entry, {}), found.word.generation, sample, shape);
}

Taken Client::take_chunk(const Large& large, std::uint64_t chunk) {
  const Sample range = large.range(chunk);
  Taken taken = take_named(name_of_chunk(attachment_->control().header.hash_key, large.entry(),
                                         large.generation(), chunk),
                           range);
  if (const auto* bytes = std::get_if<Bytes>(&taken)) {
    if (bytes->view().size() != range.length) return Failure{ESTALE, range.path};  // it shrank
  }
  return taken;
}

Taken Client::gather(const Large& large) {
  OwnMemory own({}, large.size());
  for (std::uint64_t chunk = 0; chunk < large.chunks(); ++chunk) {
    const Taken taken = take_chunk(large, chunk);
    if (const auto* failure = std::get_if<Failure>(&taken)) return *failure;
    const auto view = std::get<Bytes>(taken).view();
    std::memcpy(own.data() + chunk * large.chunk_bytes(), view.data(), view.size());
  }
  return Bytes(std::move(own), large.size());
}

Taken Client::direct(const Sample& sample) {
  const auto start = Clock::now();
  Taken taken = read_directly(sample, spare_);
  count(attachment_->slot().direct_reads);
  count(attachment_->slot().direct_ns, ns_since(start));
  if (const auto* bytes = std::get_if<Bytes>(&taken)) {
    count(attachment_->slot().direct_bytes, bytes->view().size());
  }
  return taken;
}

}  // namespace prisma
