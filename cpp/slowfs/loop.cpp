#include "slowfs/loop.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace prisma::slowfs {
namespace {

/// What ppoll wants: how long from now, or nothing for ever.
const timespec* span_until(TimePoint due, timespec& span) {
  if (due == TimePoint::max()) return nullptr;
  const auto left = std::max(due - Clock::now(), Duration::zero());
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
  span.tv_sec = whole.count();
  span.tv_nsec = std::chrono::nanoseconds(left - whole).count();
  return &span;
}

}  // namespace

class Loop::Request {
 public:
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { std::free(buffer_.mem); }

  /// More than 0 when there is a request, 0 when the file system is gone, else -errno.
  int receive(fuse_session* session) { return fuse_session_receive_buf(session, &buffer_); }
  void process(fuse_session* session) { fuse_session_process_buf(session, &buffer_); }

 private:
  fuse_buf buffer_{};  // libfuse makes its memory at the first use
};

Loop::Loop(fuse_session* session, Schedule& schedule, std::size_t threads,
           std::function<void()> ended)
    : session_(session), schedule_(schedule), ended_(std::move(ended)) {
  const int fd = fuse_session_fd(session);
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "/dev/fuse");
  }
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

Loop::~Loop() {
  end();
  threads_.clear();
  for (auto& task : schedule_.take_all()) task.run(true);
}

void Loop::serve() {
  Request request;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !led_ || stopped_; });
      if (stopped_) return;
      led_ = true;
    }
    const Work work = wait_for_work(request);
    {
      const std::lock_guard lock(mutex_);
      led_ = false;
    }
    changed_.notify_one();
    work();
  }
}

Loop::Work Loop::wait_for_work(Request& request) {
  while (true) {
    if (auto task = schedule_.take_due(Clock::now())) {
      return [task = std::move(*task)] { task.run(task.interrupted); };
    }
    const int got = request.receive(session_);
    if (got > 0) return [this, &request] { request.process(session_); };
    if (got == 0 || fuse_session_exited(session_)) {
      end();
      return ended_;
    }
    wait_until_something_is_due();
    const std::lock_guard lock(mutex_);
    if (stopped_) return [] {};
  }
}

void Loop::wait_until_something_is_due() {
  pollfd fds[] = {{fuse_session_fd(session_), POLLIN, 0}, {schedule_.wake_fd(), POLLIN, 0}};
  timespec span{};
  ::ppoll(fds, 2, span_until(schedule_.next_due(), span), nullptr);
  if (fds[1].revents != 0) schedule_.clear_wake();
}

void Loop::end() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  schedule_.wake();
}

}  // namespace prisma::slowfs
