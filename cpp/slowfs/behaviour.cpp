#include "slowfs/behaviour.h"

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace prisma::slowfs {
namespace {

double share_of(const Word& word) {
  const double share = number_of(word);
  if (share > 1) throw std::invalid_argument(word.key + " must be at most 1, got " + word.value);
  return share;
}

Jitter jitter_of(const Word& word) {
  if (word.value == "uniform") return Jitter::kUniform;
  if (word.value == "exponential") return Jitter::kExponential;
  throw std::invalid_argument(word.key + " must be uniform or exponential, got " + word.value);
}

using Setter = std::function<void(Behaviour&, const Word&)>;

template <Duration Behaviour::*member>
void set_delay(Behaviour& behaviour, const Word& word) {
  behaviour.*member = seconds(number_of(word));
}

template <double Behaviour::*member, double (*parse)(const Word&)>
void set_number(Behaviour& behaviour, const Word& word) {
  behaviour.*member = parse(word);
}

template <bool Behaviour::*member>
void set_flag(Behaviour& behaviour, const Word& word) {
  behaviour.*member = flag_of(word);
}

const std::unordered_map<std::string, Setter>& setters() {
  static const std::unordered_map<std::string, Setter> kSetters = {
      {"open_delay_s", set_delay<&Behaviour::open_delay>},
      {"read_delay_s", set_delay<&Behaviour::read_delay>},
      {"stat_delay_s", set_delay<&Behaviour::stat_delay>},
      {"jitter_share", set_number<&Behaviour::jitter_share, share_of>},
      {"jitter", [](Behaviour& all, const Word& word) { all.jitter = jitter_of(word); }},
      {"spike_share", set_number<&Behaviour::spike_share, share_of>},
      {"spike_factor", set_number<&Behaviour::spike_factor, number_of>},
      {"bytes_per_s", set_number<&Behaviour::bytes_per_s, number_of>},
      {"reads_per_s", set_number<&Behaviour::reads_per_s, number_of>},
      {"seed", [](Behaviour& all, const Word& word) { all.seed = count_of(word); }},
      {"keep_cache", set_flag<&Behaviour::keep_cache>},
      {"direct_io", set_flag<&Behaviour::direct_io>},
      {"attr_timeout_s", set_number<&Behaviour::attr_timeout_s, number_of>},
  };
  return kSetters;
}

/// The output function of SplitMix64: every bit of the result depends on every bit of the value.
/// Source: G. L. Steele et al., "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Random numbers that belong to one request and to nothing else.
class Dice {
 public:
  Dice(std::uint64_t seed, const Occasion& occasion) : state_(mixed(seed)) {
    for (const unsigned char byte : occasion.path) state_ = mixed(state_ ^ byte);
    stir(static_cast<std::uint64_t>(occasion.moment));
    stir(occasion.offset);
    stir(occasion.visit);
  }

  /// Uniform in [0, 1).
  double roll() {
    stir(1);
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }

 private:
  void stir(std::uint64_t value) { state_ = mixed(state_ ^ value); }

  std::uint64_t state_;
};

Duration base_of(const Behaviour& behaviour, Moment moment) {
  switch (moment) {
    case Moment::kOpen:
      return behaviour.open_delay;
    case Moment::kRead:
      return behaviour.read_delay;
    case Moment::kStat:
      return behaviour.stat_delay;
  }
  return {};
}

/// A random factor with mean 1, of which `share` is random.
double jittered(const Behaviour& behaviour, double uniform) {
  const double random = behaviour.jitter == Jitter::kUniform ? 2 * uniform : -std::log1p(-uniform);
  return 1 - behaviour.jitter_share + behaviour.jitter_share * random;
}

}  // namespace

void change(Behaviour& behaviour, const Word& word) {
  const auto setter = setters().find(word.key);
  if (setter == setters().end()) throw std::invalid_argument("no setting \"" + word.key + "\"");
  setter->second(behaviour, word);
}

Duration delay_of(const Behaviour& behaviour, const Occasion& occasion) {
  const Duration base = base_of(behaviour, occasion.moment);
  if (base == Duration::zero()) return base;
  Dice dice(behaviour.seed, occasion);
  double factor = jittered(behaviour, dice.roll());
  if (occasion.moment == Moment::kRead && dice.roll() < behaviour.spike_share) {
    factor *= behaviour.spike_factor;
  }
  return seconds(in_seconds(base) * factor);
}

}  // namespace prisma::slowfs
