// How slow the storage is: settings, and the delay that they give one request.
#pragma once

#include <cstdint>
#include <string_view>

#include "slowfs/clock.h"
#include "slowfs/words.h"

namespace prisma::slowfs {

enum class Jitter { kUniform, kExponential };

/// Plain data; replaced as a whole while the file system is mounted.
struct Behaviour {
  Duration open_delay{};
  Duration read_delay{};
  Duration stat_delay{};
  double jitter_share = 0;  // the part of each delay that is random; its mean stays
  Jitter jitter = Jitter::kUniform;
  double spike_share = 0;  // the share of reads that take `spike_factor` times as long
  double spike_factor = 1;
  double bytes_per_s = 0;  // over all reads; 0 means no cap
  double reads_per_s = 0;
  std::uint64_t seed = 0;
  bool keep_cache = false;  // otherwise the kernel forgets a file's pages when it is opened
  bool direct_io = false;   // no page cache at all: every read call arrives here
  double attr_timeout_s = 1;
};

/// Changes one setting; throws std::invalid_argument for a name or value that makes no sense.
void change(Behaviour& behaviour, const Word& word);

enum class Moment { kOpen, kRead, kStat };

/// What tells one request from another, whatever the order in which they arrive: with one seed,
/// two runs meet the same delays at the same places.
struct Occasion {
  std::string_view path;
  Moment moment;
  std::uint64_t offset;
  std::uint64_t visit;  // how often the path has been opened
};

Duration delay_of(const Behaviour& behaviour, const Occasion& occasion);

}  // namespace prisma::slowfs
