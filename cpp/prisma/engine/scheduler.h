// The scheduler: decides which sample is read next, and waits for room rather than evict.
//
// Order of choice: what found room after having waited for it; what somebody waits for; then, if
// there is room, the lane whose next sample will be needed first. When room is short only the head
// of a lane that has nothing at all goes on. A read for which there is no room is parked with its
// file open, and placed when enough was given back.
//
// Where storage makes no read of a lane wait (the page cache has it all), the lane is set aside:
// its consumer reads directly, and is not read ahead for until it says that its reads wait again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "prisma/base/brief_mutex.h"
#include "prisma/engine/ledger.h"
#include "prisma/source/work.h"
#include "prisma/wire/message.h"

namespace prisma {

/// Thread-safe. Nothing slow happens under its lock, and sleepers are woken outside of it.
class Scheduler final : public Work {
 public:
  Scheduler(ControlLayout& control, std::byte* data, Arena::Punch punch, std::uint64_t depth);

  /// Queues samples of a plan. Those that find the table full are left to direct reads.
  void announce(ClientId client, std::uint64_t session, const wire::Announce& announce);
  void demand(const wire::Demand& demand);

  /// Whoever wants this entry reads directly and finds storage slow again.
  void resume(const wire::Resume& resume);
  void cancel(ClientId client, const wire::Cancel& cancel);
  void client_gone(ClientId client);

  /// A fork: these entries stay until they are unpinned. Gives those that the client does hold.
  std::vector<EntryId> pin(ClientId client, const wire::Pin& pin);
  void unpin(const std::vector<EntryId>& entries);

  /// Around reading all that clients had sent by then.
  void begin_drain();
  void end_drain();
  void tune(const wire::Tune& tune);

  /// Somebody gave room back, or a tick went by: frees what was given back and goes on.
  void look_around();

  /// To be called every `seconds`: measures lanes, and gives memory back after rest.
  void tick(double seconds);

  std::uint64_t depth() const { return depth_.load(std::memory_order_relaxed); }

  /// As many readers as the depth, and more when all of them hang and somebody waits for a sample
  /// that none of them has: no consumer waits for another's read.
  std::uint64_t readers() const { return depth() + extra_.load(std::memory_order_relaxed); }

  std::optional<Read> next(std::stop_token stop, std::size_t reader) override;
  std::byte* room(Read& read, std::uint64_t bytes) override;
  void done(const Read& read, const Outcome& outcome, ReadTimes times) override;
  void retried() override;

 private:
  class Turn;

  std::optional<Read> pick();
  std::optional<Read> pick_for(std::size_t reader);
  std::optional<Read> pick_placed();
  std::optional<Read> pick_demanded();
  std::optional<Read> pick_ahead();
  std::optional<Read> begin(std::uint32_t entry);
  Read hand_out(Block& block);
  std::byte* park_or_refuse(Block& block, Read& read, std::uint64_t bytes);
  bool make_room(Block& block, std::uint64_t bytes);
  std::optional<double> due_if_it_may_evict(const Block& block);
  void place_parked();
  void refuse(Block& block);
  bool short_of_room();
  void note_speed(Lane& lane, const Block& block, bool waited);
  void set_aside(Lane& lane, bool aside);
  void ask_to_be_woken();
  void sweep();
  void sweep_if_worth_it();
  void update_gauges();
  void count_extra_readers();

  ControlLayout& control_;  // locks for itself
  std::atomic<std::uint64_t> depth_;
  std::atomic<std::uint64_t> extra_ = 0;  // readers beyond the depth, for demanded reads only

  BriefMutex mutex_;  // guards everything below
  std::condition_variable_any changed_;
  Ledger ledger_;
  std::deque<std::uint64_t> placed_, parked_;  // tickets
  std::deque<wire::Demand> demanded_;
  std::uint64_t in_flight_ = 0;
  bool waiting_for_room_ = false;
  std::uint64_t swept_at_bytes_ = 0;  // how much had been released at the last sweep
  double mean_bytes_ = 0;             // of the samples read so far
  int ticks_at_rest_ = 0;
};

}  // namespace prisma
