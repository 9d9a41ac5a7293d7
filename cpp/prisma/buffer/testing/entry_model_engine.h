// The engine in the model of entry_model.h: one thread, so it finishes one thing before it begins
// the next, but others may step in between any two of its accesses.
#pragma once

#include "prisma/buffer/testing/entry_model.h"
#include "prisma/buffer/testing/explorer.h"

namespace prisma::testing {

class EngineActor {
 public:
  explicit EngineActor(const Scene& scene) : scene_(scene), rules_(scene.rules) {}

  template <typename Visit>
  void steps(const State& state, Visit visit) const {
    if (state.engine.at == EngineStep::kDead) return;
    const auto step = [&](const char* what, auto change, bool crash = false) {
      Step<State> next{"engine", what, state, crash};
      change(next.next);
      visit(next);
    };
    step(
        "crashes", [](State& s) { crash(s); }, true);
    if (state.engine.at != EngineStep::kIdle) return go_on(state.engine.at, step);
    work_on_entry(state, step);
    listen(state, step);
  }

 private:
  static void crash(State& s) {
    s.engine = Engine{};
    s.engine.at = EngineStep::kDead;
    for (Pinning& pinning : s.pinnings) pinning.seen = Pinning::Seen::kDone;
  }

  /// What an idle engine may turn to, at any moment that its own memory allows.
  template <typename Emit>
  void work_on_entry(const State& state, Emit step) const {
    const Phase phase = state.engine.phase;
    if (phase == Phase::kNone && state.publication < scene_.publications) {
      step("names the next entry", [&](State& s) { name_next(s); });
    }
    if (phase == Phase::kQueued && !state.engine.orphan_read) {
      step("is about to start", [&](State& s) { look(s, EngineStep::kStart); });
    }
    if (phase == Phase::kReading) step("has read", [&](State& s) { fill(s); });
    if (phase == Phase::kReady) {
      step("is about to evict", [&](State& s) { look(s, EngineStep::kEvict); });
    }
    if (phase != Phase::kNone && phase != Phase::kConsumed) {
      step("is about to drop", [&](State& s) { look(s, EngineStep::kDrop); });
    }
    if (phase != Phase::kNone) step("sweeps", [&](State& s) { sweep(s); });
    if (state.engine.orphan_read) {
      step("ends a read nobody wants", [](State& s) { s.engine.orphan_read = false; });
    }
  }

  /// What others' doings may call it to.
  template <typename Emit>
  void listen(const State& state, Emit step) const {
    if (state.engine.owes_wake) step("wakes", [](State& s) { wake(s); });
    if (has_mail(state)) step("receives a pin", [](State& s) { receive(s); });
    for (std::size_t i = 0; i < state.pinnings.size(); ++i) {
      if (state.pinnings[i].seen == Pinning::Seen::kCounted &&
          state.pinnings[i].end == Pinning::End::kClosed) {
        step("sees a pin end", [=](State& s) { s.pinnings[i].seen = Pinning::Seen::kDone; });
      }
    }
    for (std::size_t i = 0; i < state.clients.size(); ++i) {
      const bool buried = (state.engine.buried >> i & 1) != 0;
      const bool dead = state.clients[i].at == ClientStep::kDead || !rules_.buries_only_the_dead;
      if (rules_.buries_the_dead && dead && !buried) {
        step("learns of a death", [&, i](State& s) { begin_burial(s, i); });
      }
    }
    if (state.clients[1].at == ClientStep::kUnborn && may_give_number_away(state)) {
      step("admits a successor", [](State& s) { s.clients[1].at = ClientStep::kFind; });
    }
  }

  /// The next access of what it has begun.
  template <typename Emit>
  void go_on(EngineStep at, Emit step) const {
    switch (at) {
      case EngineStep::kPublish:
        return step("looks at the free word", [](State& s) {
          s.engine.seen = s.word;
          s.engine.at = EngineStep::kPublishStore;
        });
      case EngineStep::kPublishStore:
        return step("publishes", [&](State& s) { publish(s); });
      case EngineStep::kNameLate:
        return step("names it late", [](State& s) {
          s.name = name_of_publication(s.publication);
          s.engine.at = EngineStep::kIdle;
        });
      case EngineStep::kFilled:
        return step("is about to finish", [&](State& s) { look(s, EngineStep::kFinish); });
      case EngineStep::kFillLate:
        return step("writes the fields late", [](State& s) {
          s.fields_of = s.publication;
          s.engine.at = EngineStep::kIdle;
        });
      case EngineStep::kSweepDrain:
        return step("drains before it reclaims", [&](State& s) {
          if (has_mail(s)) return receive(s);
          reclaim_unless(s, pins(s) > 0);
        });
      case EngineStep::kBuryDrain:
        return step("drains before it buries", [&](State& s) {
          if (has_mail(s)) return receive(s);
          s.engine.at = EngineStep::kBury;
        });
      case EngineStep::kBury:
        return step("is about to bury", [&](State& s) { look(s, EngineStep::kBurySwap); });
      default:
        return step("swaps", [&](State& s) { swap_word(s); });
    }
  }

  // Publishing and reading

  void name_next(State& s) const {
    if (rules_.name_before_publish) s.name = name_of_publication(s.publication + 1);
    s.engine.at = EngineStep::kPublish;
  }

  void publish(State& s) const {
    EntryWord word = large(s.engine.seen);
    word.state = EntryState::kFree;
    s.word = small(*rules_.publish(word));
    ++s.publication;
    s.engine.seen = 0;
    s.engine.phase = Phase::kQueued;
    s.engine.at = rules_.name_before_publish ? EngineStep::kIdle : EngineStep::kNameLate;
  }

  void fill(State& s) const {
    s.bytes_of = s.publication;
    if (rules_.fields_before_finish) s.fields_of = s.publication;
    s.engine.at = EngineStep::kFilled;
  }

  static void wake(State& s) {
    s.engine.owes_wake = false;
    for (Client& client : s.clients) {
      if (client.at == ClientStep::kAsleep) client.at = ClientStep::kReload;
    }
  }

  // Changes of the word: a look, then compare-and-swaps until one succeeds or the rule refuses

  NextWord rule(EngineStep at, const State& s, EntryWord word) const {
    switch (at) {
      case EngineStep::kStart:
        return rules_.start(word);
      case EngineStep::kFinish:
        return rules_.finish(word);
      case EngineStep::kEvict:
        return rules_.evict(word);
      case EngineStep::kDrop:
        return rules_.drop(word);
      case EngineStep::kReclaim:
        return rules_.reclaim(word);
      default:
        break;
    }
    // A child still sees it: from now on it waits only for that.
    if (pins(s) > 0) return rules_.give_back(word, dead(s));
    return rules_.reclaim_from_dead(word, dead(s));
  }

  void look(State& s, EngineStep at) const {
    s.engine.seen = s.word;
    s.engine.at = at;
    if (!rule(at, s, large(s.word))) refused(s, at);
  }

  void swap_word(State& s) const {
    const EngineStep at = s.engine.at;
    const EntryWord before = large(s.engine.seen);
    const EntryWord next = *rule(at, s, before);
    if (!swap(s, s.engine.seen, next, rules_.wakes)) return look(s, at);
    done(s);
    if (before.waited && !next.waited && rules_.wakes) s.engine.owes_wake = true;
    switch (at) {
      case EngineStep::kStart:
        s.engine.phase = Phase::kReading;
        s.engine.has_room = true;
        return reuse_bytes(s);
      case EngineStep::kFinish:
        s.engine.phase = Phase::kReady;
        if (!rules_.fields_before_finish) s.engine.at = EngineStep::kFillLate;
        return;
      case EngineStep::kEvict:
        s.engine.phase = Phase::kQueued;
        return free_room(s);
      case EngineStep::kBurySwap:
        s.engine.buried |= s.engine.burying;
        s.engine.burying = 0;
        if (next.state == EntryState::kFree) free_entry(s);
        return;
      default:
        return free_entry(s);
    }
  }

  void refused(State& s, EngineStep at) const {
    done(s);
    if (at == EngineStep::kStart) s.engine.phase = Phase::kConsumed;
    if (at == EngineStep::kFinish) s.engine.phase = Phase::kReady;
    if (at == EngineStep::kBurySwap) {
      // No pin of a dead client can still come.
      if (large(s.word).client == dead(s)) s.engine.pin_seen = true;
      s.engine.buried |= s.engine.burying;
      s.engine.burying = 0;
    }
  }

  static void done(State& s) {
    s.engine.seen = 0;
    s.engine.at = EngineStep::kIdle;
  }

  static void free_room(State& s) {
    s.engine.has_room = false;
    reuse_bytes(s);
  }

  static void free_entry(State& s) {
    s.engine.orphan_read = s.engine.phase == Phase::kReading;
    if (s.engine.has_room) free_room(s);
    s.engine.phase = Phase::kNone;
    s.engine.pin_seen = false;
    for (Pinning& pinning : s.pinnings) {
      if (pinning.seen == Pinning::Seen::kCounted) pinning.seen = Pinning::Seen::kDone;
    }
  }

  // What was given back, pins, deaths

  void sweep(State& s) const {
    const EntryWord word = large(s.word);
    if (word.state != EntryState::kTaken && word.state != EntryState::kDone) return;
    s.engine.phase = Phase::kConsumed;
    if (word.pinned && rules_.heeds_pins && rules_.drains_before_reclaim) {
      s.engine.at = EngineStep::kSweepDrain;
      return;
    }
    const bool pinned = word.pinned && (pins(s) > 0 || !s.engine.pin_seen);
    reclaim_unless(s, pinned && rules_.heeds_pins);
  }

  void reclaim_unless(State& s, bool pinned) const {
    done(s);
    if (!pinned) look(s, EngineStep::kReclaim);
  }

  static int pins(const State& s) {
    int count = 0;
    for (const Pinning& pinning : s.pinnings) count += pinning.seen == Pinning::Seen::kCounted;
    return count;
  }

  static bool has_mail(const State& s) {
    return s.pinnings[0].seen == Pinning::Seen::kSent || s.pinnings[1].seen == Pinning::Seen::kSent;
  }

  static void receive(State& s) {
    Pinning& first = s.pinnings[0].seen == Pinning::Seen::kSent ? s.pinnings[0] : s.pinnings[1];
    const EntryWord word = large(s.word);
    const bool held = word.state == EntryState::kTaken || word.state == EntryState::kDone;
    const bool counts = held && word.pinned && word.client == 1;
    first.seen = counts ? Pinning::Seen::kCounted : Pinning::Seen::kDone;
    if (counts) s.engine.pin_seen = true;
  }

  void begin_burial(State& s, std::size_t client) const {
    s.engine.burying = static_cast<std::uint8_t>(client + 1);
    s.engine.at = rules_.drains_before_burial ? EngineStep::kBuryDrain : EngineStep::kBury;
  }

  /// The number of the client that is being buried.
  ClientId dead(const State& s) const {
    return s.engine.burying == 2 && !scene_.second_is_successor ? 2 : 1;
  }

  bool may_give_number_away(const State& s) const {
    return s.clients[0].at == ClientStep::kDead &&
           ((s.engine.buried & 1) != 0 || !rules_.numbers_rest);
  }

  const Scene& scene_;
  const Rules& rules_;
};

}  // namespace prisma::testing
