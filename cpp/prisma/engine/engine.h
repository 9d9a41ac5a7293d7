// The engine: all of the data plane, put together.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "prisma/base/memory.h"
#include "prisma/engine/scheduler.h"
#include "prisma/engine/server.h"
#include "prisma/source/source.h"

namespace prisma {

struct Limits {
  std::uint64_t memory_bytes = 0;            // that the buffer may ever take
  std::uint64_t buffer_bytes = 0;            // that it takes to begin with; at most the memory
  std::uint64_t depth = 0;                   // reads in flight
  SourceKind source = SourceKind::kThreads;  // threads, where the kernel refuses it
};

class Engine {
 public:
  /// Throws std::system_error when the system has no room for the shared memory.
  Engine(Fd listener, Limits limits);

  Server& server() { return *server_; }
  void run() { server_->run(); }

 private:
  Fd data_file_, control_file_;
  Mapping data_, control_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Server> server_;
};

}  // namespace prisma
