// The clients in the model of entry_model.h, and the children that client A forks.
#pragma once

#include "prisma/buffer/testing/entry_model.h"
#include "prisma/buffer/testing/explorer.h"

namespace prisma::testing {

class ClientActor {
 public:
  ClientActor(const Scene& scene, std::size_t index)
      : scene_(scene),
        rules_(scene.rules),
        index_(index),
        number_(static_cast<ClientId>(scene.second_is_successor ? 1 : index + 1)) {}

  template <typename Visit>
  void steps(const State& state, Visit visit) const {
    const Client& client = state.clients[index_];
    if (!is_alive(client) || client.at == ClientStep::kDone) return;
    const auto step = [&](const char* what, auto change, bool crash = false) {
      Step<State> next{index_ == 0 ? "A" : "B", what, state, crash};
      change(next.next, next.next.clients[index_]);
      visit(next);
    };
    step(
        "crashes", [&](State& s, Client& c) { crash(s, c); }, true);
    if (client.lease != 0) return hold(client, step);
    seek(client, step);
  }

 private:
  void crash(State& s, Client& c) const {
    c = Client{};
    c.at = ClientStep::kDead;
    if (index_ != 0) return;
    for (Pinning& pinning : s.pinnings) {
      if (pinning.end == Pinning::End::kParent) pinning.end = Pinning::End::kClosed;
    }
  }

  /// From looking for a sample to having it, or to reading it directly.
  template <typename Emit>
  void seek(const Client& client, Emit step) const {
    switch (client.at) {
      case ClientStep::kFind:
        if (!rules_.word_before_name) {
          return step("looks at the name first", [&](State& s, Client& c) {
            if (s.name != wanted(c)) return read_directly(c);
            c.at = ClientStep::kFindWordLate;
          });
        }
        return step("looks at the word", [&](State& s, Client& c) {
          see(s, c);
          if (!is_open(c)) return read_directly(c);
          c.at = ClientStep::kFindName;
        });
      case ClientStep::kFindName:
        return step("looks at the name", [&](State& s, Client& c) {
          if (s.name != wanted(c)) return read_directly(c);
          decide(c);
        });
      case ClientStep::kFindWordLate:
        return step("looks at the word", [&](State& s, Client& c) {
          see(s, c);
          decide(c);
        });
      case ClientStep::kTake:
        return step("takes", [&](State& s, Client& c) { take(s, c); });
      case ClientStep::kWant:
        if (rules_.read_it_itself(large(client.seen), number_)) {
          step("reads it itself", [&](State& s, Client& c) { read_it_itself(s, c); });
        }
        return step("wants", [&](State& s, Client& c) { want(s, c); });
      case ClientStep::kSleep:
        return step("goes to sleep", [&](State& s, Client& c) {
          const bool as_seen = futex_half(s.word) == futex_half(c.seen);
          c.at = as_seen || !rules_.waits_by_word ? ClientStep::kAsleep : ClientStep::kReload;
        });
      case ClientStep::kAsleep:
        if (!rules_.wakes_by_time) return;
        return step("has slept enough", [](State&, Client& c) { c.at = ClientStep::kReload; });
      case ClientStep::kReload:
        return step("looks again", [&](State& s, Client& c) {
          look_again(s, c);
          const bool ready = c.at == ClientStep::kTake;
          const bool alone = s.engine.at == EngineStep::kDead && rules_.watches_engine;
          if (alone && !ready) read_directly(c);
        });
      default:
        return;
    }
  }

  /// While it holds a sample.
  template <typename Emit>
  void hold(const Client& client, Emit step) const {
    switch (client.at) {
      case ClientStep::kFields:
        return step("reads the fields", [](State& s, Client& c) {
          if (s.fields_of != c.lease) blame(s, Fault::kWrongFields);
          c.at = ClientStep::kUse;
        });
      case ClientStep::kUse:
        if (index_ == 0 && client.forks < scene_.forks) {
          step("pins", [&](State& s, Client& c) {
            if (swap_held(s, c, rules_.pin(large(c.seen), number_))) c.at = ClientStep::kSendPin;
          });
        }
        return step("gives back", [&](State& s, Client& c) {
          if (!swap_held(s, c, rules_.give_back(large(c.seen), number_))) return;
          c.lease = 0;
          read_directly(c);
        });
      case ClientStep::kSendPin:
        if (!rules_.forks_after_pin_was_sent) {
          step("finds the socket full", [](State& s, Client& c) {
            s.pinnings[c.forks] = {Pinning::End::kParent, Pinning::Seen::kDone};
            c.at = ClientStep::kFork;
          });
        }
        return step("sends the pin", [](State& s, Client& c) {
          const bool heard = s.engine.at != EngineStep::kDead;
          s.pinnings[c.forks] = {Pinning::End::kParent,
                                 heard ? Pinning::Seen::kSent : Pinning::Seen::kDone};
          c.at = ClientStep::kFork;
        });
      default:
        return step("forks", [](State& s, Client& c) {
          s.pinnings[c.forks].end = Pinning::End::kChild;
          ++c.forks;
          c.at = ClientStep::kUse;
        });
    }
  }

  static Name wanted(const Client& c) { return name_of_read(c.read); }

  static bool is_open(const Client& c) {
    const EntryState state = large(c.seen).state;
    return state == EntryState::kQueued || state == EntryState::kReading ||
           state == EntryState::kReady;
  }

  static void see(const State& s, Client& c) {
    c.seen = s.word;
    c.found = s.publication;
  }

  static void forget(Client& c, ClientStep next) {
    c.seen = 0;
    c.found = 0;
    c.at = next;
  }

  void decide(Client& c) const {
    const EntryWord word = large(c.seen);
    if (rules_.take(word, number_)) {
      c.at = ClientStep::kTake;
    } else if (rules_.want(word)) {
      c.at = ClientStep::kWant;
    } else {
      forget(c, ClientStep::kFind);
    }
  }

  /// The same in the end for a sample that it is done with, and one that it must read by itself.
  void read_directly(Client& c) const {
    ++c.read;
    forget(c, c.read == scene_.reads[index_] ? ClientStep::kDone : ClientStep::kFind);
  }

  void look_again(State& s, Client& c) const {
    const bool same = large(s.word).generation == large(c.seen).generation;
    if (!same && rules_.sticks_to_its_find) return forget(c, ClientStep::kFind);
    const std::uint8_t found = c.found;
    see(s, c);
    if (same) c.found = found;
    const bool still_waits = large(c.seen).waited && is_open(c);
    decide(c);
    if (still_waits && c.at == ClientStep::kWant) c.at = ClientStep::kSleep;
  }

  /// A compare-and-swap on what it found; where that fails, the next look.
  bool swap_found(State& s, Client& c, NextWord next) const {
    if (!next || !swap(s, c.seen, *next)) {
      look_again(s, c);
      return false;
    }
    if (c.found != s.publication) blame(s, Fault::kStaleSwap);
    return true;
  }

  void take(State& s, Client& c) const {
    const NextWord next = rules_.take(large(c.seen), number_);
    if (!swap_found(s, c, next)) return;
    if (name_of_publication(s.publication) != wanted(c)) blame(s, Fault::kWrongSample);
    if (s.bytes_of == 0 || s.bytes_of != s.publication) blame(s, Fault::kTookWithoutBytes);
    const Client& other = s.clients[1 - index_];
    if (is_alive(other) && other.lease != 0) blame(s, Fault::kTwoHolders);
    c.lease = s.publication;
    c.seen = small(*next);
    c.at = ClientStep::kFields;
  }

  void want(State& s, Client& c) const {
    const NextWord next = rules_.want(large(c.seen));
    if (!swap_found(s, c, next)) return;
    c.seen = small(*next);
    c.at = ClientStep::kSleep;
  }

  void read_it_itself(State& s, Client& c) const {
    if (swap_found(s, c, rules_.read_it_itself(large(c.seen), number_))) read_directly(c);
  }

  /// A compare-and-swap on what it holds: nobody else may have changed it.
  bool swap_held(State& s, Client& c, NextWord next) const {
    if (!next || !swap(s, c.seen, *next)) {
      blame(s, Fault::kLostItsLease);
      return false;
    }
    c.seen = small(*next);
    return true;
  }

  const Scene& scene_;
  const Rules& rules_;
  const std::size_t index_;
  const ClientId number_;
};

/// The children of client A. Each sees what A held when it forked, until it has attached anew or
/// died.
class ChildActor {
 public:
  explicit ChildActor(const Scene& scene) : rules_(scene.rules) {}

  template <typename Visit>
  void steps(const State& state, Visit visit) const {
    for (std::size_t i = 0; i < state.pinnings.size(); ++i) {
      if (state.pinnings[i].end != Pinning::End::kChild) continue;
      Step<State> ends{"a child", "lets go or dies", state};
      ends.next.pinnings[i].end = Pinning::End::kClosed;
      visit(ends);
      // One that has attached anew and forgets that what it inherited is not its own.
      const auto number = static_cast<ClientId>(i + 3);
      if (const NextWord next = rules_.give_back(large(state.word), number)) {
        Step<State> gives_back{"a child", "gives back what its parent holds", state};
        swap(gives_back.next, state.word, *next);
        visit(gives_back);
      }
    }
  }

 private:
  const Rules& rules_;
};

}  // namespace prisma::testing
