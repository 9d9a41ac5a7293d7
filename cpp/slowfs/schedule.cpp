#include "slowfs/schedule.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace prisma::slowfs {

Schedule::Schedule() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Schedule::add(TimePoint due, Task task) {
  const std::lock_guard lock(mutex_);
  task.interrupted = interrupted_.contains(task.request);
  const bool free = task.interrupted || released_.contains(task.held_by);
  insert(free ? TimePoint{} : due, std::move(task));
}

void Schedule::release(std::uint64_t rule) {
  const std::lock_guard lock(mutex_);
  released_.insert(rule);
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto at = task++;
    if (at->second.held_by == rule) hurry(at, false);
  }
}

void Schedule::interrupt(const void* request) {
  const std::lock_guard lock(mutex_);
  interrupted_.insert(request);
  for (auto task = tasks_.begin(); task != tasks_.end(); ++task) {
    if (task->second.request == request) return hurry(task, true);
  }
}

void Schedule::forget(const void* request) {
  const std::lock_guard lock(mutex_);
  interrupted_.erase(request);
}

std::optional<Task> Schedule::take_due(TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (tasks_.empty() || tasks_.begin()->first > now) return std::nullopt;
  return std::move(tasks_.extract(tasks_.begin()).mapped());
}

TimePoint Schedule::next_due() const {
  const std::lock_guard lock(mutex_);
  return tasks_.empty() ? TimePoint::max() : tasks_.begin()->first;
}

std::vector<Task> Schedule::take_all() {
  const std::lock_guard lock(mutex_);
  std::vector<Task> all;
  for (auto& [due, task] : tasks_) all.push_back(std::move(task));
  tasks_.clear();
  return all;
}

void Schedule::clear_wake() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
}

void Schedule::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wake_.get(), &one, sizeof one);
}

void Schedule::hurry(Tasks::iterator task, bool interrupted) {
  auto node = tasks_.extract(task);
  node.mapped().interrupted = interrupted;
  node.mapped().held_by = 0;
  node.key() = TimePoint{};
  tasks_.insert(std::move(node));
  wake();
}

void Schedule::insert(TimePoint due, Task task) {
  const bool earliest = tasks_.empty() || due < tasks_.begin()->first;
  tasks_.emplace(due, std::move(task));
  if (earliest) wake();
}

}  // namespace prisma::slowfs
