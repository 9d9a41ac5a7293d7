// What has to be done around a fork, by the objects that it concerns.
//
// The list of them is the one global of the core: pthread_atfork takes functions without an object.
#pragma once

#include <functional>

namespace prisma {

/// Steps around every fork of this process, while it lives. A member that comes last: made when all
/// is there, gone before anything is. (A `clone` past the C library goes unseen.)
class AtFork {
 public:
  struct Steps {
    std::function<void()> before;     // what is done here happens before the child exists
    std::function<void()> in_parent;  // after
    std::function<void()> in_child;   // whose only thread this is
  };

  explicit AtFork(Steps steps);
  AtFork(const AtFork&) = delete;
  ~AtFork();  // waits for a fork that is going on

  const Steps& steps() const { return steps_; }

 private:
  const Steps steps_;
};

}  // namespace prisma
