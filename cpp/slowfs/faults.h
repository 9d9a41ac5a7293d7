// What goes wrong on purpose: rules that match paths by a glob, each with one effect.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "slowfs/behaviour.h"

namespace prisma::slowfs {

/// One rule; of the effects only those that are set count.
struct Rule {
  std::string glob;  // of the path below the mount, '*' matches '/' too
  Moment moment = Moment::kOpen;
  std::uint64_t times = 0;                   // how often per path; 0 means always
  int error = 0;                             // an errno
  Duration delay{};                          // on top of every other delay
  bool hold = false;                         // wait until the rule is taken away
  std::optional<std::uint64_t> short_bytes;  // a read gives at most so much
  std::optional<std::uint64_t> end_at;       // the file ends here, though its size says more
};

/// Throws std::invalid_argument.
Rule parse_rule(const std::vector<std::string_view>& words);

/// What all rules together do to one request.
struct Verdict {
  int error = 0;
  Duration delay{};
  std::uint64_t held_by = 0;  // the id of a rule; 0 is none
  std::uint64_t short_bytes = UINT64_MAX;
  std::uint64_t end_at = UINT64_MAX;
};

/// Thread-safe.
class Faults {
 public:
  std::uint64_t add(Rule rule);   // its id, from 1
  void remove(std::uint64_t id);  // nothing happens when there is no such rule
  Verdict judge(std::string_view path, Moment moment);

  /// Whether reads of a path must come here one by one, as the caller issues them: the page cache
  /// would take a short read for the end of file, and would try a failed one again by itself.
  bool wants_direct_io(std::string_view path) const;

 private:
  struct Entry {
    std::uint64_t id;
    Rule rule;
    std::unordered_map<std::string, std::uint64_t> used;  // how often, by path
  };

  mutable std::mutex mutex_;  // guards everything below
  std::vector<Entry> entries_;
  std::uint64_t last_id_ = 0;
};

}  // namespace prisma::slowfs
