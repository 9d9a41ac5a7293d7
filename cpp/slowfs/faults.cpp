#include "slowfs/faults.h"

#include <fnmatch.h>

#include <algorithm>
#include <stdexcept>

namespace prisma::slowfs {
namespace {

bool matches(const Rule& rule, const std::string& path) {
  return ::fnmatch(rule.glob.c_str(), path.c_str(), 0) == 0;
}

Moment moment_of(const Word& word) {
  if (word.value == "open") return Moment::kOpen;
  if (word.value == "read") return Moment::kRead;
  if (word.value == "stat") return Moment::kStat;
  throw std::invalid_argument("at must be open, read or stat, got " + word.value);
}

void change(Rule& rule, const Word& word) {
  if (word.key == "glob") {
    rule.glob = word.value;
  } else if (word.key == "at") {
    rule.moment = moment_of(word);
  } else if (word.key == "times") {
    rule.times = count_of(word);
  } else if (word.key == "error") {
    rule.error = static_cast<int>(count_of(word));
  } else if (word.key == "delay_s") {
    rule.delay = seconds(number_of(word));
  } else if (word.key == "hold") {
    rule.hold = flag_of(word);
  } else if (word.key == "short_bytes") {
    rule.short_bytes = std::max(count_of(word), 1UL);  // nothing at all would mean end of file
  } else if (word.key == "end_at") {
    rule.end_at = count_of(word);
  } else {
    throw std::invalid_argument("a rule has no \"" + word.key + "\"");
  }
}

void apply(const Rule& rule, std::uint64_t id, Verdict& verdict) {
  if (rule.error != 0) verdict.error = rule.error;
  verdict.delay += rule.delay;
  if (rule.hold) verdict.held_by = id;
  verdict.short_bytes = std::min(verdict.short_bytes, rule.short_bytes.value_or(UINT64_MAX));
  verdict.end_at = std::min(verdict.end_at, rule.end_at.value_or(UINT64_MAX));
}

}  // namespace

Rule parse_rule(const std::vector<std::string_view>& words) {
  Rule rule;
  for (const auto word : words) change(rule, parse_word(word));
  return rule;
}

std::uint64_t Faults::add(Rule rule) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({++last_id_, std::move(rule), {}});
  return last_id_;
}

void Faults::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [id](const Entry& entry) { return entry.id == id; });
}

Verdict Faults::judge(std::string_view path, Moment moment) {
  Verdict verdict;
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return verdict;
  const std::string name(path);
  for (auto& [id, rule, used] : entries_) {
    if (rule.moment != moment || !matches(rule, name)) continue;
    if (rule.times != 0 && used[name]++ >= rule.times) continue;
    apply(rule, id, verdict);
  }
  return verdict;
}

bool Faults::wants_direct_io(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return false;
  const std::string name(path);
  return std::any_of(entries_.begin(), entries_.end(), [&name](const Entry& entry) {
    const Rule& rule = entry.rule;
    return rule.moment == Moment::kRead && matches(rule, name) &&
           (rule.error != 0 || rule.short_bytes || rule.end_at);
  });
}

}  // namespace prisma::slowfs
