// prisma-takes: how long taking and giving back a ready sample takes in C++, without looking at it.
//
//   prisma-takes ADDRESS LIST room    all samples fit into the buffer and are ready before it
//   begins prisma-takes ADDRESS LIST full    they do not: it takes some, waits until the buffer is
//   full
//                                     again, and takes some more
//
// Its answer is one line of JSON. What lies between the calls write(-1, "begin") and
// write(-1, "end") is what a tracer should count; the waiting (nanosleep) is not part of it.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "list.h"
#include "prisma/client/client.h"

namespace prisma::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 64;
constexpr std::size_t kAhead = 4 * kBatch;  // that are ready, before some are taken
constexpr std::uint32_t kPlan = 1;

void mark(std::string_view what) {
  [[maybe_unused]] const auto refused = ::write(-1, what.data(), what.size());
}

void wait_until(const std::function<bool()>& condition) {
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (Clock::now() > deadline) throw std::runtime_error("the engine did not get ready");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

class Takes {
 public:
  Takes(const std::string& address, const char* list, bool full)
      : client_(wire::connect_to(address)), full_(full) {
    for (auto& path : paths_in(list)) samples_.push_back({std::move(path)});
  }

  void run() {
    client_.announce(kPlan, 0, wire::NamedBy::kPosition, 0, samples_);
    client_.settle();
    wait_until_ready(full_ ? kAhead : samples_.size());
    mark("begin");
    std::vector<double> ns;
    for (std::size_t at = 0; at + kBatch <= samples_.size(); at += kBatch) {
      if (full_) wait_until_ready(at + kAhead);
      const auto start = Clock::now();
      for (std::size_t i = at; i < at + kBatch; ++i) take(i);
      ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kBatch);
    }
    mark("end");
    report(ns);
  }

 private:
  void take(std::size_t position) {
    const Taken taken = client_.take(kPlan, 0, position, samples_[position]);
    if (std::holds_alternative<Failure>(taken)) throw std::runtime_error("a sample failed");
  }

  /// Reads are done in the order of takes, so the next ones are ready once enough were done.
  void wait_until_ready(std::size_t samples) const {
    const auto& counters = client_.engine().counters;
    const std::size_t least = std::min(samples, samples_.size());
    wait_until([&] { return counters.in_flight == 0 && counters.reads >= least; });
  }

  void report(std::vector<double>& ns) const {
    std::nth_element(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2), ns.end());
    const auto& mine = client_.counters();
    std::printf("{\"ns_per_hit\": %.1f, \"takes\": %zu, \"hits\": %llu, \"direct\": %llu}\n",
                ns[ns.size() / 2], ns.size() * kBatch,
                static_cast<unsigned long long>(mine.hits.load()),
                static_cast<unsigned long long>(mine.direct_reads.load()));
  }

  Client client_;
  std::vector<Sample> samples_;
  bool full_;
};

}  // namespace
}  // namespace prisma::bench

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: prisma-takes ADDRESS LIST room|full\n");
    return 2;
  }
  try {
    prisma::bench::Takes(words[1], words[2], words[3] == std::string_view("full")).run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
  return 0;
}
