#include "slowfs/counters.h"

#include <algorithm>

#include "slowfs/words.h"

namespace prisma::slowfs {
namespace {

constexpr const char* kNames[] = {"opens", "reads", "stats", "lookups", "opendirs", "readdirs"};

void append(std::string& json, const std::string& name, const std::string& value) {
  json += (json.empty() ? "{\"" : ", \"") + name + "\": " + value;
}

void append(std::string& json, const std::string& name, const InFlight& in_flight) {
  append(json, name + "_in_flight", std::to_string(in_flight.now()));
  append(json, name + "_in_flight_max", std::to_string(in_flight.maximum()));
  append(json, name + "_in_flight_mean", std::to_string(in_flight.mean()));
}

}  // namespace

void InFlight::enter(TimePoint now) {
  if (first_ == TimePoint{}) first_ = last_ = now;
  pass_time(now);
  maximum_ = std::max(maximum_, ++now_);
}

void InFlight::leave(TimePoint now) {
  pass_time(now);
  --now_;
}

void InFlight::reset() {
  const std::uint64_t still = now_;
  *this = {};
  now_ = maximum_ = still;
  if (still > 0) first_ = last_ = Clock::now();
}

double InFlight::mean() const {
  const double span = in_seconds(last_ - first_);
  return span > 0 ? area_ / span : 0;
}

void InFlight::pass_time(TimePoint now) {
  area_ += static_cast<double>(now_) * in_seconds(now - last_);
  last_ = now;
}

void Counters::enter(Kind kind) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = Clock::now();
  ++counts_[static_cast<int>(kind)];
  if (kind == Kind::kRead) reads_.enter(now);
  if (kind == Kind::kRead || kind == Kind::kOpen) requests_.enter(now);
}

void Counters::leave(Kind kind, std::uint64_t bytes, bool failed) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = Clock::now();
  read_bytes_ += bytes;
  errors_ += failed ? 1 : 0;
  if (kind == Kind::kRead) reads_.leave(now);
  if (kind == Kind::kRead || kind == Kind::kOpen) requests_.leave(now);
}

std::uint64_t Counters::open(std::string_view path) {
  const std::lock_guard lock(mutex_);
  return opens_by_path_[std::string(path)]++;
}

void Counters::reset() {
  const std::lock_guard lock(mutex_);
  std::fill(std::begin(counts_), std::end(counts_), 0);
  read_bytes_ = errors_ = 0;
  reads_.reset();
  requests_.reset();
  opens_by_path_.clear();
}

std::string Counters::json() const {
  const std::lock_guard lock(mutex_);
  std::string json;
  for (std::size_t kind = 0; kind < std::size(kNames); ++kind) {
    append(json, kNames[kind], std::to_string(counts_[kind]));
  }
  append(json, "read_bytes", std::to_string(read_bytes_));
  append(json, "errors", std::to_string(errors_));
  append(json, "reads", reads_);
  append(json, "requests", requests_);
  return json + "}";
}

std::string Counters::opens_by_path_json() const {
  const std::lock_guard lock(mutex_);
  std::string json;
  for (const auto& [path, opens] : opens_by_path_) {
    append(json, percent_encoded(path), std::to_string(opens));
  }
  return json.empty() ? "{}" : json + "}";
}

}  // namespace prisma::slowfs
