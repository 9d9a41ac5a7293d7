// What lies in the shared memory *control*, where engine and clients meet. (*data* is nothing but
// samples' bytes, each sample on a page of its own.)
//
// Clients may write all of it, so the engine relies on none of it: what it needs to know about an
// entry it keeps for itself, and reads here only the words of the protocol in entry_state.h.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "prisma/base/siphash.h"
#include "prisma/buffer/entry_state.h"

namespace prisma {

inline constexpr std::uint64_t kLayoutMagic = 0x31616d7369727031;
inline constexpr std::uint32_t kEntries = 1 << 16;  // samples announced and not consumed, all plans
inline constexpr std::uint32_t kBuckets = 1 << 16;
inline constexpr std::uint32_t kClients = 1 << 10;
inline constexpr std::uint32_t kLanes = 1 << 12;

enum class EntryKind : std::uint32_t {
  kBytes,    // `offset` and `length` say where in *data*
  kStream,   // too large to lie in one piece: `length` bytes, taken chunk by chunk
  kFailed,   // `error_number` says why
  kRefused,  // the engine cannot serve it (a pipe, no room in one piece): read it directly
};

/// One occurrence of a sample in a plan.
struct alignas(64) Entry {
  std::atomic<std::uint64_t> word;  // see entry_state.h; its low half is the futex
  std::array<std::atomic<std::uint64_t>, 2> name;
  std::atomic<std::uint64_t> offset;  // kStream: time of the file's last change, in ns
  std::atomic<std::uint64_t> length;
  std::atomic<std::uint32_t> next;  // in its bucket, plus one; 0 ends it
  std::atomic<EntryKind> kind;
  std::atomic<std::int32_t> error_number;
  std::atomic<std::uint32_t> lane;

  const std::atomic<std::uint32_t>* futex() const {
    return reinterpret_cast<const std::atomic<std::uint32_t>*>(&word);
  }
};
static_assert(sizeof(Entry) == 64);

/// The head of a chain of entries. The version is odd while the engine changes the chain.
struct Bucket {
  std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> head;  // plus one; 0: empty
};

/// Counters of one client, written by it alone but for `announced`.
struct alignas(64) ClientSlot {
  std::atomic<std::uint32_t> announced;  // engine: its Announce messages so far; a futex
  std::atomic<std::uint64_t> hits, lates, misses, unplanned;
  std::atomic<std::uint64_t> taken_bytes, direct_reads, direct_bytes, direct_ns, asides;
  std::atomic<std::uint64_t> stall_ns, private_copies, private_bytes, leased_bytes;
};

inline constexpr std::uint64_t kMostAsideBytes = 1 << 20;  // what is larger, the engine reads

/// What lane and clients tell each other about stepping aside: where the page cache has it all, a
/// direct read costs less than having the engine read and taking it.
struct alignas(64) LaneSlot {
  std::atomic<std::uint32_t> aside;        // engine: read directly what I have not started
  std::atomic<std::uint32_t> slow_reads;   // clients: direct reads since, that the cache had not
  std::atomic<std::uint64_t> spent_ns;     // clients: what direct reads since took,
  std::atomic<std::uint64_t> expected_ns;  // and what they would have from the page cache
};

/// Counters of the engine, written by it alone.
struct alignas(64) EngineCounters {
  std::atomic<std::uint64_t> reads, read_bytes, read_ns, open_ns, failures, retries;
  std::atomic<std::uint64_t> rereads, stale, cancelled, shared, refused, streams;
  std::atomic<std::uint64_t> ready_bytes, used_bytes, given_back_bytes;
  std::atomic<std::uint64_t> queued, in_flight, in_flight_ns, most_in_flight, parked;
  std::atomic<std::uint64_t> lanes, clients;
};

struct Header {
  std::uint64_t magic;
  std::uint64_t data_bytes;
  HashKey hash_key;
  std::int64_t engine_pid;

  alignas(64) std::atomic<std::uint64_t> heartbeat;  // engine: counts up while it lives
  std::atomic<std::uint64_t> buffer_bytes;           // engine: the knobs in force
  std::atomic<std::uint64_t> depth;

  alignas(64) std::atomic<std::uint64_t> released_bytes;  // clients: grows with every give_back
  std::atomic<std::uint64_t> wake_at;  // engine: ring when released_bytes reaches it
  alignas(64) std::atomic<std::uint64_t> leased_bytes;  // clients: held by views right now

  EngineCounters counters;
};

struct ControlLayout {
  Header header;
  std::array<ClientSlot, kClients> clients;
  std::array<LaneSlot, kLanes> lanes;
  std::array<Bucket, kBuckets> buckets;
  std::array<Entry, kEntries> entries;
};

inline constexpr std::uint64_t kNeverWake = UINT64_MAX;

}  // namespace prisma
