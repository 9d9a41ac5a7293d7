// How the mount's owner steers it: one line asks, one line of JSON answers.
//
//   counters                       what was counted since the start or the last
//   reset opens                          opens by path, paths percent-encoded
//   reset                          all counters to zero
//   set SETTING=VALUE ...          all of them, or none when one makes no sense
//   rule glob=… at=open|read|stat [times=K] [error=ERRNO] [delay_s=S] [hold=1]
//   [short_bytes=N]
//        [end_at=N]                adds a fault, answers its id
//   drop id=N                      takes a rule away; requests that it holds go
//   on
//
// The answer to what makes no sense is {"error": "…"}, percent-encoded. When
// the other end closes, or the owner's process ends however it may, the mount
// ends too.
#pragma once

#include <string>
#include <string_view>

#include "prisma/base/fd.h"
#include "slowfs/filesystem.h"

namespace prisma::slowfs {

/// Carries out one line; never throws for bad input.
std::string carry_out(std::string_view line, Filesystem &filesystem);

class Control {
 public:
  /// `socket` may be -1, `owner_pid` 0: then nobody steers.
  Control(int socket, int owner_pid, Filesystem &filesystem);

  void end();  // from any thread: `run` returns
  void run();  // until the owner is gone, a signal asks for the end, or `end` is
               // called

 private:
  bool serve_owner();  // false once the other end is closed
  void say(std::string_view line);

  Filesystem &filesystem_;
  const Fd socket_;
  const Fd owner_;    // a pidfd
  const Fd signals_;  // SIGINT, SIGTERM and SIGHUP, which are blocked from here on
  const Fd ended_;
  std::string heard_;  // of a line that is not complete
};

}  // namespace prisma::slowfs
