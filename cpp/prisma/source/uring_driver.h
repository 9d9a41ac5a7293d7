// Takes reads from step to step over a ring.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>

#include "prisma/source/aside.h"
#include "prisma/source/inbox.h"
#include "prisma/source/ring.h"
#include "prisma/source/work.h"

namespace prisma {

/// For the one thread that the ring belongs to.
class UringDriver {
 public:
  UringDriver(Work& work, std::shared_ptr<Inbox> inbox, Aside& aside, Ring& ring)
      : work_(work), inbox_(std::move(inbox)), aside_(aside), ring_(ring) {}

  /// Drives reads until stopped, and then until all that were begun have ended.
  void run(std::stop_token stop);

 private:
  enum class Step { kOpen, kFirstStamp, kRead, kLastStamp };

  /// A read under way. It stays where it is, since the kernel writes to it.
  struct Flight {
    std::uint64_t id;
    Read read;
    ReadTimes times;
    Step step = Step::kOpen;
    std::chrono::steady_clock::time_point since;  // when the step began
    Fd fd;                                        // between opening and knowing what it is
    bool local = false;  // the kernel itself knows size and times: asking never waits
    struct statx status;
    std::uint64_t bytes = 0, got = 0;
  };

  void obey(Inbox::Parcel parcel);
  void take_completions();
  void ask_for_more();
  void begin(Read read);
  void go_on(Flight& flight, std::int32_t result);

  void open(Flight& flight);
  void opened(Flight& flight, int fd);
  void stamped(Flight& flight);
  void find_room(Flight& flight);
  void read_what_is_there(Flight& flight);
  void read_on(Flight& flight);
  void got(Flight& flight, std::uint64_t bytes);
  void check(Flight& flight);
  void checked(Flight& flight, const FileStamp& now);

  void failed(Flight& flight, int error_number);
  void put_aside(Flight& flight);
  void end(Flight& flight, const Outcome& outcome);
  void forget(Flight& flight);
  void time_step(Flight& flight);

  Work& work_;                    // outlives this; locks for itself
  std::shared_ptr<Inbox> inbox_;  // locks for itself
  Aside& aside_;
  Ring& ring_;
  std::map<std::uint64_t, Flight> flights_;
  std::uint64_t last_id_;
  std::size_t closing_ = 0;
  std::size_t workers_ = 0;
  bool opens_at_once_ = true;  // the last file was local, so the next one likely is
  bool more_ = false;          // reads have ended since `Work::next` was asked
};

}  // namespace prisma
