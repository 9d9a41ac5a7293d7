// The threads that serve the kernel's requests and those whose wait is over.
//
// One thread at a time leads: it alone waits, for a request or for the next due task. Before it
// serves what came it hands the lead to another. So one wait covers both kinds of work, and the
// end needs no signal to get threads out of a blocking read.
// Source: D. C. Schmidt et al., "Leader/Followers", PLoP 2000.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "slowfs/schedule.h"

namespace prisma::slowfs {

class Loop {
 public:
  /// `ended` is called once, from a thread of the loop, when the file system was unmounted.
  Loop(fuse_session* session, Schedule& schedule, std::size_t threads, std::function<void()> ended);
  ~Loop();  // joins the threads; tasks still waiting are run as interrupted

 private:
  class Request;  // the bytes of one request, received and not yet served
  using Work = std::function<void()>;

  void serve();
  Work wait_for_work(Request& request);
  void wait_until_something_is_due();
  void end();

  fuse_session* const session_;
  Schedule& schedule_;
  const std::function<void()> ended_;
  std::mutex mutex_;  // guards led_ and stopped_
  std::condition_variable changed_;
  bool led_ = false;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;  // last: joined before anything they use is destroyed
};

}  // namespace prisma::slowfs
