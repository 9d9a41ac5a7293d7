// One process's hold on an engine: the socket, the shared memory, and a number.
//
// A forked child inherits the memory and nothing else. Views that are held at a fork are pinned:
// the engine hears of them before the child exists, together with one end of a pipe whose other end
// the child has, and gives their room to nobody until the parent has released them and that other
// end is closed, which it is when the child has let go of this attachment, or ended, or is another
// program.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "prisma/base/fd.h"
#include "prisma/base/fork.h"
#include "prisma/base/memory.h"
#include "prisma/buffer/layout.h"
#include "prisma/wire/socket.h"

namespace prisma {

/// Watches the heartbeat of an engine that is waited for. One that was stopped (a debugger, a
/// signal) keeps its connections open, and would be waited for without end.
class Patience {
  using Clock = std::chrono::steady_clock;

 public:
  explicit Patience(const std::atomic<std::uint64_t>& heartbeat)
      : heartbeat_(heartbeat), seen_(heartbeat.load()) {}

  /// To be asked now and then, however often. True: not a beat in two seconds in which this process
  /// was awake itself.
  bool is_over() {
    constexpr int kLooks = 20;
    constexpr auto kApart = std::chrono::milliseconds(100);
    const std::uint64_t beat = heartbeat_.load();
    const auto now = Clock::now();
    if (beat != seen_) {
      looks_ = 0;
    } else if (now - last_look_ >= kApart) {
      ++looks_;
    } else {
      return false;
    }
    seen_ = beat;
    last_look_ = now;
    return looks_ >= kLooks;
  }

 private:
  const std::atomic<std::uint64_t>& heartbeat_;
  std::uint64_t seen_;
  int looks_ = 0;
  Clock::time_point last_look_ = Clock::now();
};

class Attachment {
 public:
  /// Greets the engine at the other end. Throws std::system_error when there is none, when it
  /// speaks another version (EPROTO), or does not answer in five seconds (ETIMEDOUT). `check` is
  /// called every 100 ms; what it throws ends the wait.
  Attachment(Fd socket, std::uint64_t session, const std::function<void()>& check);

  ControlLayout& control() const { return *reinterpret_cast<ControlLayout*>(control_.data()); }
  ClientSlot& slot() const { return control().clients[number_]; }
  const std::byte* data() const { return data_.data(); }
  ClientId number() const { return number_; }
  std::uint64_t session() const { return session_; }
  std::int64_t engine_pid() const { return engine_pid_; }

  /// Whether this is the process that attached, and the same user: others must attach anew.
  bool is_ours() const {
    return ours_.load(std::memory_order_relaxed) && same_user_.load(std::memory_order_relaxed);
  }

  /// Asks the system who the user is. The engine reads what its own user may, and so must serve
  /// nobody who has given up rights since.
  void check_user();

  /// Whether the engine still has its end of the connection.
  bool engine_lives() const;

  /// Sends, waiting for the engine to make place for it. False: it is gone, or has been stopped.
  bool send(const wire::Message& message, std::span<const int> descriptors = {}) const;

  /// Gives an entry back that this client holds, and rings if the engine waits for that.
  void give_back(std::uint32_t entry, std::uint64_t bytes) const;

 private:
  void before_fork();
  void after_fork_in_child();
  std::vector<std::uint32_t> pin_what_is_held();
  void announce_pins(std::vector<std::uint32_t> entries, const Fd& end) const;

  Fd socket_, bell_;
  Mapping data_, control_;
  ClientId number_ = 0;
  std::uint64_t session_ = 0;
  std::int64_t engine_pid_ = 0;
  std::atomic<bool> ours_ = false;  // true once attached
  std::atomic<bool> same_user_ = true;
  const uid_t user_;
  const gid_t group_;
  Fd our_end_;                 // of the pipe for the fork that is going on
  std::vector<Fd> inherited_;  // in a child: our ends, kept as long as views may be
  AtFork at_fork_;             // last
};

}  // namespace prisma
