// The protocol between engine and clients over one entry: one 64-bit word, changed only by
// compare-and-swap. Everything here is a pure function from a word to the next one, so that a test
// can try every interleaving, and so that both sides follow the same rules.
//
//             publish            start             finish             take            give_back
//   FREE ─────────────▶ QUEUED ─────────▶ READING ─────────▶ READY ─────────▶ TAKEN ─────────▶ DONE
//    ▲ engine             │ ▲ engine        │ engine    engine │ ▲    client   │      client    │
//    │                    │ └───────────────┼────── evict ─────┘ │              │                │
//    │                    │ engine          │                    │              │ reclaim        │
//    └──────── drop ──────┴─────────────────┴────────────────────┘              │ (client died)  │
//    └─────────────────────────────────────────────────────────────────────────┴──── reclaim ───┘
//
// Besides, a client may go from QUEUED straight to DONE (`read_it_itself`): it reads the sample
// directly and the engine need not.
//
// Who writes: the engine all but take, give_back, want, pin and read_it_itself, which are a
// client's. What a crash leaves behind: every change is one compare-and-swap, so the word is always
// in a state of this picture. A client that dies leaves entries TAKEN under its number; the engine,
// which watches its clients, reclaims them. An engine that dies leaves entries that never change
// again; a client waits at most 100 ms at a time and looks after the engine in between. READY bytes
// stay valid after the engine's death, as long as the client maps them.
//
// The generation counts how often the entry was published. A client that looked at an entry, slept,
// and comes back after the entry was used again fails its compare-and-swap, since the generation
// has moved on. Fields beside the word are written by the engine before `publish` and before
// `finish`, and never between `take` and `reclaim`.
#pragma once

#include <cstdint>
#include <optional>

namespace prisma {

enum class EntryState : std::uint8_t { kFree, kQueued, kReading, kReady, kTaken, kDone };

using ClientId = std::uint16_t;

struct EntryWord {
  EntryState state = EntryState::kFree;
  bool waited = false;    // a client sleeps on it: wake it when the state changes
  bool demanded = false;  // a client asked for it: read it first, do not evict it
  bool pinned = false;    // a forked child may still see its bytes
  ClientId client = 0;    // who holds it, while TAKEN or DONE
  std::uint32_t generation = 0;

  bool operator==(const EntryWord&) const = default;
};

constexpr std::uint64_t pack(EntryWord word) {
  return static_cast<std::uint64_t>(word.state) | std::uint64_t{word.waited} << 8 |
         std::uint64_t{word.demanded} << 9 | std::uint64_t{word.pinned} << 10 |
         std::uint64_t{word.client} << 16 | std::uint64_t{word.generation} << 32;
}

constexpr EntryWord unpack(std::uint64_t raw) {
  return {static_cast<EntryState>(raw & 0xff),
          (raw >> 8 & 1) != 0,
          (raw >> 9 & 1) != 0,
          (raw >> 10 & 1) != 0,
          static_cast<ClientId>(raw >> 16 & 0xffff),
          static_cast<std::uint32_t>(raw >> 32)};
}

using NextWord = std::optional<EntryWord>;  // nothing: not allowed from here

namespace entry_engine {

constexpr NextWord publish(EntryWord now) {
  if (now.state != EntryState::kFree) return {};
  return EntryWord{.state = EntryState::kQueued, .generation = now.generation + 1};
}

constexpr NextWord start(EntryWord now) {
  if (now.state != EntryState::kQueued) return {};
  now.state = EntryState::kReading;
  return now;
}

/// Bytes, or the reason why there are none, are in place. Wake those who wait.
constexpr NextWord finish(EntryWord now) {
  if (now.state != EntryState::kReading) return {};
  now.state = EntryState::kReady;
  now.waited = false;
  return now;
}

/// Takes the room of a ready entry back; it will be read again. Not what somebody asked for.
constexpr NextWord evict(EntryWord now) {
  if (now.state != EntryState::kReady || now.demanded || now.waited) return {};
  now.state = EntryState::kQueued;
  return now;
}

/// The plan ended or went past it. Wake those who wait: they will read directly.
constexpr NextWord drop(EntryWord now) {
  if (now.state != EntryState::kQueued && now.state != EntryState::kReading &&
      now.state != EntryState::kReady) {
    return {};
  }
  return EntryWord{.generation = now.generation};
}

/// After its consumer gave it back.
constexpr NextWord reclaim(EntryWord now) {
  if (now.state != EntryState::kDone) return {};
  return EntryWord{.generation = now.generation};
}

/// After its consumer died.
constexpr NextWord reclaim_from_dead(EntryWord now, ClientId dead) {
  if (now.state != EntryState::kTaken || now.client != dead) return {};
  return EntryWord{.generation = now.generation};
}

}  // namespace entry_engine

namespace entry_client {

constexpr NextWord take(EntryWord now, ClientId self) {
  if (now.state != EntryState::kReady) return {};
  return EntryWord{.state = EntryState::kTaken, .client = self, .generation = now.generation};
}

constexpr NextWord want(EntryWord now) {
  if (now.state != EntryState::kQueued && now.state != EntryState::kReading) return {};
  now.waited = true;
  now.demanded = true;
  return now;
}

constexpr NextWord read_it_itself(EntryWord now, ClientId self) {
  if (now.state != EntryState::kQueued || now.demanded) return {};
  return EntryWord{.state = EntryState::kDone, .client = self, .generation = now.generation};
}

constexpr NextWord pin(EntryWord now, ClientId self) {
  if (now.state != EntryState::kTaken || now.client != self) return {};
  now.pinned = true;
  return now;
}

constexpr NextWord give_back(EntryWord now, ClientId self) {
  if (now.state != EntryState::kTaken || now.client != self) return {};
  now.state = EntryState::kDone;
  return now;
}

}  // namespace entry_client

}  // namespace prisma
