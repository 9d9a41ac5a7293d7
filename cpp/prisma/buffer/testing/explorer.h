// Visits every state that a model of several actors can reach, whatever the order in which they
// take their steps. Breadth first, so that the way to the first fault found is a shortest one.
//
// A model gives
//   State                     plain data without padding
//   initial()                 where it starts
//   steps(state, visit)       calls visit(Step) for each step that some actor can take from there
//   fault(state)              what is wrong in this state, or nullptr
//   fault_at_end(state)       the same for a state from which only crashes lead on
//   describe(state)           a line for the reader of a trace
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace prisma::testing {

template <typename State>
struct Step {
  const char* actor;
  const char* what;
  State next;
  bool crash = false;
};

/// What an exploration saw. `fault` is empty, or says what is wrong and how it came to be.
struct Explored {
  std::size_t states = 0;
  std::size_t steps = 0;
  std::size_t ends = 0;
  std::string fault;
};

/// States by number, each once.
template <typename State>
class StateSet {
  static_assert(std::has_unique_object_representations_v<State>);
  static_assert(sizeof(State) % sizeof(std::uint64_t) == 0);

 public:
  State operator[](std::uint32_t number) const { return std::bit_cast<State>(states_[number]); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(states_.size()); }

  /// The number of a state, which is `size() - 1` when it is new.
  std::uint32_t number_of(const State& state) {
    if (states_.size() * 2 >= slots_.size()) grow();
    const auto words = std::bit_cast<Words>(state);
    std::uint32_t& slot = slot_of(words);
    if (slot == kNone) {
      slot = size();
      states_.push_back(words);
    }
    return slot;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Words: an eighth of the work for a sanitizer that looks at every access.
  using Words = std::array<std::uint64_t, sizeof(State) / sizeof(std::uint64_t)>;

  static std::uint64_t hash(const Words& words) {
    std::uint64_t sum = 0;
    for (const std::uint64_t word : words) {
      sum = (sum ^ word) * 0x9e3779b97f4a7c15;
      sum ^= sum >> 32;
    }
    return sum;
  }

  std::uint32_t& slot_of(const Words& state) {
    std::size_t at = hash(state) & (slots_.size() - 1);
    while (slots_[at] != kNone && states_[slots_[at]] != state) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  void grow() {
    slots_.assign(std::max<std::size_t>(slots_.size() * 4, 1 << 16), kNone);
    for (std::uint32_t number = 0; number < size(); ++number) slot_of(states_[number]) = number;
  }

  std::vector<Words> states_;
  std::vector<std::uint32_t> slots_;
};

template <typename Model>
class Explorer {
 public:
  using State = typename Model::State;

  explicit Explorer(const Model& model) : model_(model) {}

  Explored run() {
    add(model_.initial(), 0);
    for (std::uint32_t number = 0; number < states_.size(); ++number) {
      if (const char* fault = expand(number)) return report(fault, number);
    }
    if (const auto trapped = first_without_an_end(); trapped < states_.size()) {
      return report("whatever happens from here on, it never comes to an end", trapped);
    }
    explored_.states = states_.size();
    return explored_;
  }

 private:
  void add(const State& state, std::uint32_t parent) {
    const std::uint32_t before = states_.size();
    const std::uint32_t number = states_.number_of(state);
    if (states_.size() > before) parents_.push_back(parent);
    onward_.push_back(number);
  }

  /// Notes where all steps from a state lead. Returns its fault.
  const char* expand(std::uint32_t number) {
    const State state = states_[number];
    if (const char* fault = model_.fault(state)) return fault;
    onward_.clear();
    bool is_end = true;
    model_.steps(state, [&](const Step<State>& step) {
      if (std::memcmp(&step.next, &state, sizeof(State)) == 0) return;
      ++explored_.steps;
      add(step.next, number);
      if (step.crash) {
        onward_.pop_back();  // nobody may count on a crash
      } else {
        is_end = false;
      }
    });
    edges_.insert(edges_.end(), onward_.begin(), onward_.end());
    edge_ends_.push_back(edges_.size());
    if (!is_end) return nullptr;
    ++explored_.ends;
    return model_.fault_at_end(state);
  }

  /// The first state from which no end can be reached without a crash.
  std::uint32_t first_without_an_end() const {
    std::vector<bool> ends(states_.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t number = states_.size(); number-- > 0;) {
        if (ends[number]) continue;
        const std::size_t begin = number == 0 ? 0 : edge_ends_[number - 1];
        const std::size_t end = edge_ends_[number];
        bool good = begin == end;
        for (std::size_t edge = begin; edge < end && !good; ++edge) good = ends[edges_[edge]];
        if (good) ends[number] = changed = true;
      }
    }
    const auto trapped = std::find(ends.begin(), ends.end(), false);
    return static_cast<std::uint32_t>(trapped - ends.begin());
  }

  Explored report(const char* fault, std::uint32_t number) {
    std::vector<std::uint32_t> way{number};
    while (way.back() != 0) way.push_back(parents_[way.back()]);
    std::ostringstream text;
    text << fault << "\n  " << model_.describe(states_[0]);
    for (std::size_t at = way.size() - 1; at-- > 0;) {
      const State next = states_[way[at]];
      const char* taken = nullptr;
      model_.steps(states_[way[at + 1]], [&](const Step<State>& step) {
        if (taken != nullptr || std::memcmp(&step.next, &next, sizeof(State)) != 0) return;
        taken = step.what;
        text << "\n  " << step.actor << " " << step.what << ": " << model_.describe(next);
      });
    }
    explored_.fault = text.str();
    explored_.states = states_.size();
    return explored_;
  }

  const Model& model_;
  Explored explored_;
  StateSet<State> states_;
  std::vector<std::uint32_t> parents_;
  std::vector<std::uint32_t> onward_;   // from the state that is being expanded
  std::vector<std::uint32_t> edges_;    // of all states, one after another, crashes left out
  std::vector<std::size_t> edge_ends_;  // where those of each state end
};

template <typename Model>
Explored explore(const Model& model) {
  return Explorer<Model>(model).run();
}

}  // namespace prisma::testing
