// A model of everything that happens to one entry of the buffer: its word and the fields beside it,
// the bytes it stands for, and all that the engine, two clients and the children that one of them
// forks remember from one step to the next.
//
// A step is one access to what is shared: a load, a compare-and-swap, a futex call, a packet. The
// words are changed by the functions of entry_state.h, or by those that a test puts in their place
// to see that they matter. The same holds for the rules that the actors follow besides.
//
// Published three times at most, as the samples X, Y and X again. Bytes that come free are at once
// overwritten by "another sample", so that whoever still looks at them is found.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "prisma/buffer/entry_state.h"

namespace prisma::testing {

/// What the actors go by. A test breaks one of them at a time.
struct Rules {
  NextWord (*publish)(EntryWord) = entry_engine::publish;
  NextWord (*start)(EntryWord) = entry_engine::start;
  NextWord (*finish)(EntryWord) = entry_engine::finish;
  NextWord (*evict)(EntryWord) = entry_engine::evict;
  NextWord (*drop)(EntryWord) = entry_engine::drop;
  NextWord (*reclaim)(EntryWord) = entry_engine::reclaim;
  NextWord (*reclaim_from_dead)(EntryWord, ClientId) = entry_engine::reclaim_from_dead;
  NextWord (*take)(EntryWord, ClientId) = entry_client::take;
  NextWord (*want)(EntryWord) = entry_client::want;
  NextWord (*read_it_itself)(EntryWord, ClientId) = entry_client::read_it_itself;
  NextWord (*pin)(EntryWord, ClientId) = entry_client::pin;
  NextWord (*give_back)(EntryWord, ClientId) = entry_client::give_back;

  // The engine's
  bool name_before_publish = true;
  bool fields_before_finish = true;
  bool wakes = true;                  // when a change ends what somebody waits for
  bool buries_the_dead = true;        // reclaims what they held
  bool buries_only_the_dead = true;   // not those whose socket has merely closed
  bool heeds_pins = true;             // leaves alone what a child may see
  bool drains_before_reclaim = true;  // takes Pin messages before it reclaims a pinned entry
  bool drains_before_burial = true;   // and before it reclaims what a dead client held
  bool numbers_rest = true;           // gives a client's number away only after its burial

  // The clients'
  bool word_before_name = true;    // looks at the word, then at the name
  bool sticks_to_its_find = true;  // looks again when the generation has moved on
  bool wakes_by_time = true;       // sleeps for a limited time only
  bool watches_engine = true;      // reads directly when the engine is gone
  bool forks_after_pin_was_sent = true;
  bool waits_by_word = true;  // goes to sleep only while the word is what it saw
};

/// Who takes part, and in what.
struct Scene {
  Rules rules;
  int publications = 3;
  std::array<int, 2> reads{1, 1};    // samples that each client reads: X, then Y
  int forks = 0;                     // how often client A forks at most, while it holds a sample
  bool second_is_successor = false;  // B comes after A died, and is given A's number
};

enum class Name : std::uint8_t { kX, kY };
constexpr Name name_of_publication(int publication) {
  return publication % 2 == 1 ? Name::kX : Name::kY;
}
constexpr Name name_of_read(int read) { return read % 2 == 0 ? Name::kX : Name::kY; }

enum class Fault : std::uint8_t {
  kNone,
  kTwoHolders,
  kWrongSample,
  kStaleSwap,
  kWrongFields,
  kReusedUnderHolder,
  kReusedUnderChild,
  kTookWithoutBytes,
  kLostItsLease,
  kUnwoken,
};

enum class EngineStep : std::uint8_t {
  kIdle,
  kPublish,
  kPublishStore,
  kNameLate,
  kStart,
  kFilled,
  kFinish,
  kFillLate,
  kEvict,
  kDrop,
  kSweepDrain,
  kReclaim,
  kBuryDrain,
  kBury,
  kBurySwap,
  kDead,
};

/// What the engine remembers of its entry.
enum class Phase : std::uint8_t { kNone, kQueued, kReading, kReady, kConsumed };

struct Engine {
  std::uint16_t seen = 0;
  EngineStep at = EngineStep::kIdle;
  Phase phase = Phase::kNone;
  bool has_room = false;
  bool orphan_read = false;  // goes on for an entry that was dropped
  bool owes_wake = false;
  bool pin_seen = false;
  std::uint8_t burying = 0;  // which client, plus one
  std::uint8_t buried = 0;   // one bit for each client
};

enum class ClientStep : std::uint8_t {
  kUnborn,
  kFind,
  kFindName,
  kFindWordLate,
  kTake,
  kWant,
  kSleep,
  kAsleep,
  kReload,
  kFields,
  kUse,
  kSendPin,
  kFork,
  kDone,
  kDead,
};

struct Client {
  std::uint16_t seen = 0;
  ClientStep at = ClientStep::kFind;
  std::uint8_t read = 0;   // which of its samples it is at
  std::uint8_t lease = 0;  // which publication it holds
  std::uint8_t found = 0;  // which publication `seen` is of; truth, that no client knows
  std::uint8_t forks = 0;  // made
  std::uint8_t unused = 0;
};

/// A Pin message, and the descriptor with it that tells when the child has let go.
struct Pinning {
  enum class End : std::uint8_t { kNone, kParent, kChild, kClosed };
  enum class Seen : std::uint8_t { kNo, kSent, kCounted, kDone };
  End end = End::kNone;
  Seen seen = Seen::kNo;
};

struct State {
  std::uint16_t word = 0;
  std::uint8_t publication = 0;  // truth; the word's generation should follow it
  std::uint8_t fields_of = 0;    // whose place and length stand beside the word
  std::uint8_t bytes_of = 0;     // whose bytes lie in the entry's room; 0: another's
  Name name = Name::kX;
  Engine engine;
  std::array<Client, 2> clients;
  std::array<Pinning, 2> pinnings;
  Fault fault = Fault::kNone;
  std::array<std::uint8_t, 3> unused{};
};
static_assert(sizeof(State) == 40);

/// An EntryWord in 16 bits, which suffice for the few clients and generations there are.
constexpr std::uint16_t small(EntryWord word) {
  if (word.generation > 7 || word.client > 7 || word.state > EntryState::kDone) {
    throw std::logic_error("the model is too small for this word");
  }
  return static_cast<std::uint16_t>(static_cast<int>(word.state) | word.waited << 3 |
                                    word.demanded << 4 | word.pinned << 5 | word.client << 6 |
                                    word.generation << 9);
}

constexpr EntryWord large(std::uint16_t word) {
  return {static_cast<EntryState>(word & 7),
          (word >> 3 & 1) != 0,
          (word >> 4 & 1) != 0,
          (word >> 5 & 1) != 0,
          static_cast<ClientId>(word >> 6 & 7),
          static_cast<std::uint32_t>(word >> 9)};
}

/// The half of the word that a futex compares.
constexpr std::uint32_t futex_half(std::uint16_t word) {
  return static_cast<std::uint32_t>(pack(large(word)));
}

inline void blame(State& state, Fault fault) {
  if (state.fault == Fault::kNone) state.fault = fault;
}

inline bool is_alive(const Client& client) {
  return client.at != ClientStep::kDead && client.at != ClientStep::kUnborn;
}

/// One compare-and-swap. `wakes`: who does it owes a wake to those who wait, and knows it.
inline bool swap(State& state, std::uint16_t seen, EntryWord next, bool wakes = false) {
  if (state.word != seen) return false;
  if (large(seen).waited && !next.waited && !wakes) blame(state, Fault::kUnwoken);
  state.word = small(next);
  return true;
}

/// The room of the entry goes to another sample.
inline void reuse_bytes(State& state) {
  state.bytes_of = 0;
  for (const Client& client : state.clients) {
    if (is_alive(client) && client.lease != 0) blame(state, Fault::kReusedUnderHolder);
  }
  for (const Pinning& pinning : state.pinnings) {
    if (pinning.end == Pinning::End::kChild) blame(state, Fault::kReusedUnderChild);
  }
}

}  // namespace prisma::testing
