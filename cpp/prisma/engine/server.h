// The server: takes clients in, hands their messages to the scheduler, and buries the dead.
//
// A client is gone when its process ended (its pidfd tells, whatever descriptors its children keep)
// or when the last copy of its socket closed. What it had sent before is looked at first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "prisma/base/fd.h"
#include "prisma/engine/scheduler.h"
#include "prisma/wire/socket.h"

namespace prisma {

/// The descriptors that every client gets.
struct SharedFiles {
  Fd data;  // read-only
  Fd control;
  Fd bell;  // an eventfd: rung when room was given back that the engine waits for
};

/// Not thread-safe: all of it runs in the thread that calls `run`.
class Server {
 public:
  /// `each_tick` is called ten times a second while it serves. Without a listener, only connections
  /// that are handed to `welcome` are served.
  Server(Fd listener, SharedFiles files, Scheduler& scheduler, ControlLayout& control,
         std::function<void()> each_tick);

  /// Takes in a connection that was made elsewhere.
  void welcome(Fd socket);

  /// Serves until the last client is gone, or none came within ten seconds.
  void run();

  /// Waits at most a tenth of a second for events, and handles those that came.
  void serve_once();

 private:
  struct Connection {
    Fd socket;
    Fd process;
    ClientId id = 0;
    std::uint64_t session = 0;
    bool greeted = false;
    bool gone = false;
  };

  /// What a forked child may still see, until the other end of `end` is closed.
  struct Inherited {
    Fd end;
    std::vector<EntryId> entries;
  };

  void watch(const Fd& fd, std::uint64_t what);
  void accept_all();
  void handle(std::uint64_t what);
  void read_all(Connection& connection);
  void obey(Connection& connection, wire::Received& packet);
  void pin(Connection& connection, const wire::Pin& pin, std::vector<Fd> ends);
  void unpin(std::uint64_t fork);
  void drain();
  void greet(Connection& connection, const wire::Hello& hello);
  void bury_the_gone();
  ClientId free_number() const;

  Fd listener_;
  SharedFiles files_;
  Scheduler& scheduler_;  // outlives this; locks for itself
  ControlLayout& control_;
  std::function<void()> each_tick_;
  Fd events_;
  std::map<ClientId, Connection> connections_;
  std::map<std::uint64_t, Inherited> inherited_;  // by a number of the fork
  std::uint64_t next_fork_ = 1;
  std::uint64_t next_session_ = 1;
  bool had_clients_ = false;
};

}  // namespace prisma
