// Every interleaving of two clients, their children and the engine over one entry, with a crash of
// any of them at any step. Each rule of the protocol is also broken once, to see that it is needed
// and that its breaking would be found.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <ostream>
#include <string>

#include "prisma/buffer/testing/entry_model.h"
#include "prisma/buffer/testing/entry_model_client.h"
#include "prisma/buffer/testing/entry_model_engine.h"
#include "prisma/buffer/testing/explorer.h"

namespace prisma::testing {
namespace {

const char* text_of(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return nullptr;
    case Fault::kTwoHolders:
      return "two clients hold the entry";
    case Fault::kWrongSample:
      return "a client took another sample than it wanted";
    case Fault::kStaleSwap:
      return "a swap succeeded on an entry that was published anew";
    case Fault::kWrongFields:
      return "a holder read the fields of another publication";
    case Fault::kReusedUnderHolder:
      return "bytes were reused under a holder";
    case Fault::kReusedUnderChild:
      return "bytes were reused under a child";
    case Fault::kTookWithoutBytes:
      return "a client took an entry without its bytes";
    case Fault::kLostItsLease:
      return "a holder's entry was changed by another";
    case Fault::kUnwoken:
      return "somebody sleeps and nobody is going to wake it";
  }
  return "unknown";
}

/// The actors of one scene together.
class EntryModel {
 public:
  using State = testing::State;

  explicit EntryModel(const Scene& scene)
      : scene_(scene), engine_(scene_), a_(scene_, 0), b_(scene_, 1), children_(scene_) {}
  EntryModel(const EntryModel&) = delete;

  State initial() const {
    State state;
    if (scene_.second_is_successor) state.clients[1].at = ClientStep::kUnborn;
    return state;
  }

  template <typename Visit>
  void steps(const State& state, Visit visit) const {
    engine_.steps(state, visit);
    a_.steps(state, visit);
    b_.steps(state, visit);
    children_.steps(state, visit);
  }

  const char* fault(const State& state) const {
    if (state.fault != Fault::kNone) return text_of(state.fault);
    const bool engine_lives = state.engine.at != EngineStep::kDead;
    const bool will_be_woken = large(state.word).waited || state.engine.owes_wake;
    for (const Client& client : state.clients) {
      if (client.lease != 0 && state.bytes_of != client.lease) {
        return text_of(Fault::kReusedUnderHolder);
      }
      if (client.at == ClientStep::kAsleep && engine_lives && !will_be_woken) {
        return text_of(Fault::kUnwoken);
      }
    }
    return nullptr;
  }

  const char* fault_at_end(const State& state) const {
    for (const Client& client : state.clients) {
      if (is_alive(client) && client.at != ClientStep::kDone) return "a client waits for ever";
    }
    if (state.engine.at == EngineStep::kDead) return nullptr;
    const bool is_free = large(state.word).state == EntryState::kFree;
    return is_free && state.engine.phase == Phase::kNone ? nullptr : "the entry never comes free";
  }

  std::string describe(const State& state) const {
    static constexpr const char* kStates[] = {"FREE",  "QUEUED", "READING",
                                              "READY", "TAKEN",  "DONE"};
    const EntryWord word = large(state.word);
    std::string text = kStates[static_cast<int>(word.state)];
    if (word.waited) text += " waited";
    if (word.demanded) text += " demanded";
    if (word.pinned) text += " pinned";
    return text + " client " + std::to_string(word.client) + " generation " +
           std::to_string(word.generation);
  }

 private:
  const Scene scene_;
  EngineActor engine_;
  ClientActor a_, b_;
  ChildActor children_;
};

// Nothing here has threads: the thread sanitizer has nothing to find, and takes seven times as
// long.
#ifdef __SANITIZE_THREAD__
constexpr int kPublications = 2;
#else
constexpr int kPublications = 3;
#endif

Explored explore_scene(const Scene& scene) {
  const auto begin = std::chrono::steady_clock::now();
  const EntryModel model(scene);
  const Explored seen = explore(model);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("             %zu states, %zu steps, %zu ends, %.1f s\n", seen.states, seen.steps,
              seen.ends, took.count());
  return seen;
}

TEST(Interleavings, NothingGoesWrongBetweenTwoClientsForksOfOneAndTheEngineWhoeverCrashesWhen) {
  const Explored seen =
      explore_scene({.rules = {}, .publications = kPublications, .reads = {2, 2}, .forks = 2});
  EXPECT_EQ(seen.fault, "");
  EXPECT_GT(seen.states, 300'000u);
}

TEST(Interleavings, NothingGoesWrongWhenADeadClientsNumberIsGivenToAnother) {
  const Explored seen = explore_scene({.rules = {},
                                       .publications = kPublications,
                                       .reads = {2, 2},
                                       .forks = 2,
                                       .second_is_successor = true});
  EXPECT_EQ(seen.fault, "");
  EXPECT_GT(seen.states, 10'000u);
}

/// A scene with one broken rule, and the fault that must come of it.
struct Broken {
  const char* name;
  const char* fault;
  void (*change)(Scene&);
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenRule : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenRule, IsFound) {
  Scene scene;
  GetParam().change(scene);
  const Explored seen = explore_scene(scene);
  EXPECT_EQ(seen.fault.substr(0, seen.fault.find('\n')), GetParam().fault) << seen.fault;
}

NextWord taken_by(EntryWord now, ClientId self) {
  return EntryWord{.state = EntryState::kTaken, .client = self, .generation = now.generation};
}

NextWord freed(EntryWord now) { return EntryWord{.generation = now.generation}; }

const Broken kBrokenRules[] = {
    {"TakeIgnoresWhetherBytesAreThere", "a client took an entry without its bytes",
     [](Scene& scene) { scene.rules.take = taken_by; }},
    {"TakeIgnoresTheHolder", "two clients hold the entry",
     [](Scene& scene) {
       scene.rules.take = [](EntryWord now, ClientId self) -> NextWord {
         if (now.state == EntryState::kTaken) return taken_by(now, self);
         return entry_client::take(now, self);
       };
     }},
    {"PublishKeepsTheGeneration", "a swap succeeded on an entry that was published anew",
     [](Scene& scene) {
       scene.rules.publish = [](EntryWord now) -> NextWord {
         return EntryWord{.state = EntryState::kQueued, .generation = now.generation};
       };
     }},
    {"ClientsFollowAnEntryIntoItsNextGeneration", "a client took another sample than it wanted",
     [](Scene& scene) { scene.rules.sticks_to_its_find = false; }},
    {"TheNameIsReadBeforeTheWord", "a client took another sample than it wanted",
     [](Scene& scene) { scene.rules.word_before_name = false; }},
    {"TheNameIsWrittenAfterPublishing", "a client took another sample than it wanted",
     [](Scene& scene) { scene.rules.name_before_publish = false; }},
    {"FieldsAreWrittenAfterFinishing", "a holder read the fields of another publication",
     [](Scene& scene) { scene.rules.fields_before_finish = false; }},
    {"EvictIgnoresTheHolder", "bytes were reused under a holder",
     [](Scene& scene) {
       scene.rules.evict = [](EntryWord now) -> NextWord {
         if (now.state == EntryState::kTaken) now.state = EntryState::kReady;
         return entry_engine::evict(now);
       };
     }},
    {"DropIgnoresTheHolder", "bytes were reused under a holder",
     [](Scene& scene) { scene.rules.drop = freed; }},
    {"ReclaimIgnoresTheHolder", "bytes were reused under a holder",
     [](Scene& scene) { scene.rules.reclaim = freed; }},
    {"ReclaimFromTheDeadIgnoresWhoHolds", "bytes were reused under a holder",
     [](Scene& scene) {
       scene.rules.reclaim_from_dead = [](EntryWord now, ClientId) -> NextWord {
         return now.state == EntryState::kTaken ? freed(now) : NextWord{};
       };
     }},
    {"TheLivingAreBuried", "bytes were reused under a holder",
     [](Scene& scene) { scene.rules.buries_only_the_dead = false; }},
    {"TheDeadAreNotBuried", "the entry never comes free",
     [](Scene& scene) { scene.rules.buries_the_dead = false; }},
    {"ANumberIsGivenAwayBeforeTheBurial", "bytes were reused under a holder",
     [](Scene& scene) {
       scene.rules.numbers_rest = false;
       scene.second_is_successor = true;
     }},
    {"GiveBackIgnoresTheHolder", "a holder's entry was changed by another",
     [](Scene& scene) {
       scene.rules.give_back = [](EntryWord now, ClientId) -> NextWord {
         return entry_client::give_back(now, now.client);
       };
       scene.forks = 1;
     }},
    {"ReclaimIgnoresPins", "bytes were reused under a child",
     [](Scene& scene) {
       scene.rules.heeds_pins = false;
       scene.forks = 1;
     }},
    {"PinLeavesNoMark", "bytes were reused under a child",
     [](Scene& scene) {
       scene.rules.pin = [](EntryWord now, ClientId) -> NextWord { return now; };
       scene.forks = 1;
     }},
    {"AForkDoesNotWaitForItsPinToBeSent", "bytes were reused under a child",
     [](Scene& scene) {
       scene.rules.forks_after_pin_was_sent = false;
       scene.forks = 1;
     }},
    {"ASecondPinOnItsWayIsNotAwaited", "bytes were reused under a child",
     [](Scene& scene) {
       scene.rules.drains_before_reclaim = false;
       scene.forks = 2;
     }},
    {"APinOfTheDeadOnItsWayIsNotAwaited", "bytes were reused under a child",
     [](Scene& scene) {
       scene.rules.drains_before_burial = false;
       scene.forks = 1;
     }},
    {"ChangesWakeNobody", "somebody sleeps and nobody is going to wake it",
     [](Scene& scene) { scene.rules.wakes = false; }},
    {"WantLeavesNoMark", "somebody sleeps and nobody is going to wake it",
     [](Scene& scene) {
       scene.rules.want = [](EntryWord now) -> NextWord {
         return entry_client::want(now) ? now : NextWord{};
       };
     }},
    {"SleepersDoNotCompareTheWord", "somebody sleeps and nobody is going to wake it",
     [](Scene& scene) { scene.rules.waits_by_word = false; }},
    {"ASampleThatSomebodyWaitsForIsReadDirectly", "somebody sleeps and nobody is going to wake it",
     [](Scene& scene) {
       scene.rules.read_it_itself = [](EntryWord now, ClientId self) -> NextWord {
         now.demanded = false;
         return entry_client::read_it_itself(now, self);
       };
     }},
    {"SleepersTrustInTheWake", "a client waits for ever",
     [](Scene& scene) { scene.rules.wakes_by_time = false; }},
    {"NobodyLooksAfterTheEngine", "whatever happens from here on, it never comes to an end",
     [](Scene& scene) { scene.rules.watches_engine = false; }},
};

INSTANTIATE_TEST_SUITE_P(Interleavings, BrokenRule, ::testing::ValuesIn(kBrokenRules),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace prisma::testing
