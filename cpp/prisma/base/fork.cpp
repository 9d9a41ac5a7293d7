#include "prisma/base/fork.h"

#include <pthread.h>

#include <mutex>
#include <utility>
#include <vector>

namespace prisma {
namespace {

struct Hooks {
  std::mutex mutex;  // held from before a fork until after it, on both sides
  std::vector<const AtFork*> all;
};

Hooks& hooks();

void before() {
  hooks().mutex.lock();
  for (const AtFork* hook : hooks().all) hook->steps().before();
}

void in_parent() {
  for (const AtFork* hook : hooks().all) hook->steps().in_parent();
  hooks().mutex.unlock();
}

void in_child() {
  for (const AtFork* hook : hooks().all) hook->steps().in_child();
  hooks().mutex.unlock();
}

/// Never destroyed: other threads may fork while the program ends.
Hooks& hooks() {
  static Hooks* const only = [] {
    ::pthread_atfork(before, in_parent, in_child);
    return new Hooks;
  }();
  return *only;
}

}  // namespace

AtFork::AtFork(Steps steps) : steps_(std::move(steps)) {
  const std::lock_guard lock(hooks().mutex);
  hooks().all.push_back(this);
}

AtFork::~AtFork() {
  const std::lock_guard lock(hooks().mutex);
  std::erase(hooks().all, this);
}

}  // namespace prisma
