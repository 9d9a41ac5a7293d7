// Requests that wait for their time to come. Waiting holds no thread, so any number can.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "prisma/base/fd.h"
#include "slowfs/clock.h"

namespace prisma::slowfs {

/// What is done when a request's time has come, or earlier because its caller gave up.
struct Task {
  const void* request = nullptr;  // a name for `interrupt`
  std::uint64_t held_by = 0;      // the rule whose removal ends the wait
  std::function<void(bool interrupted)> run;
  bool interrupted = false;
};

/// Thread-safe.
class Schedule {
 public:
  Schedule();

  void add(TimePoint due, Task task);
  void release(std::uint64_t rule);     // tasks that this rule holds, and later ones, are due
  void interrupt(const void* request);  // its task is due, also when it is yet to be added
  void forget(const void* request);     // an interrupt of it no longer means anything
  std::optional<Task> take_due(TimePoint now);
  TimePoint next_due() const;  // TimePoint::max() when there is none
  std::vector<Task> take_all();

  /// Readable when the next due time may have moved to an earlier one.
  int wake_fd() const { return wake_.get(); }
  void clear_wake();
  void wake();

 private:
  using Tasks = std::multimap<TimePoint, Task>;

  void hurry(Tasks::iterator task, bool interrupted);
  void insert(TimePoint due, Task task);

  const Fd wake_;
  mutable std::mutex mutex_;  // guards everything below
  Tasks tasks_;
  std::set<std::uint64_t> released_;
  std::set<const void*> interrupted_;
};

}  // namespace prisma::slowfs
