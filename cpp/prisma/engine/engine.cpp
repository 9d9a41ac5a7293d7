#include "prisma/engine/engine.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "prisma/base/failure.h"
#include "prisma/base/units.h"

namespace prisma {
namespace {

Fd copy_of(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) throw_errno("F_DUPFD_CLOEXEC");
  return copy;
}

Fd new_bell() {
  Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) throw_errno("eventfd");
  return bell;
}

ControlLayout& lay_out(const Mapping& memory, std::uint64_t data_bytes) {
  // Fresh pages of a memfd are zero, which is what every counter, word and link begins with.
  auto& control = *reinterpret_cast<ControlLayout*>(memory.data());
  std::random_device random;
  const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
  control.header.hash_key = {word(), word()};
  control.header.data_bytes = data_bytes;
  control.header.engine_pid = ::getpid();
  control.header.magic = kLayoutMagic;
  return control;
}

/// What was asked for if the kernel has it. The log tells of it if not.
std::unique_ptr<Source> source_or_threads(SourceKind kind, Work& work) {
  try {
    return make_source(kind, work);
  } catch (const std::system_error& refused) {
    const std::string name(name_of(kind));
    std::fprintf(stderr, "prismaio: no %s here (%s): threads read instead\n", name.c_str(),
                 refused.what());
    return make_source(SourceKind::kThreads, work);
  }
}

}  // namespace

Engine::Engine(Fd listener, Limits limits) {
  const std::uint64_t memory = whole_pages(std::max(limits.memory_bytes, kPage));
  data_file_ = sealed_memfd("prisma-data", memory);
  control_file_ = sealed_memfd("prisma-control", whole_pages(sizeof(ControlLayout)));
  data_ = Mapping(data_file_, memory, Mapping::Access::kReadWrite);
  control_ = Mapping(control_file_, sizeof(ControlLayout), Mapping::Access::kReadWrite);
  ControlLayout& control = lay_out(control_, memory);
  const auto punch = [file = data_file_.get()](Extent extent) {
    ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset),
                static_cast<off_t>(extent.bytes));
  };
  const std::uint64_t depth = std::max<std::uint64_t>(limits.depth, 1);
  scheduler_ = std::make_unique<Scheduler>(control, data_.data(), punch, depth);
  if (limits.buffer_bytes > 0) scheduler_->tune({0, limits.buffer_bytes});
  source_ = source_or_threads(limits.source, *scheduler_);
  source_->set_depth(depth);
  SharedFiles files{reopened_read_only(data_file_), copy_of(control_file_), new_bell()};
  server_ = std::make_unique<Server>(std::move(listener), std::move(files), *scheduler_, control,
                                     [this] { source_->set_depth(scheduler_->readers()); });
}

}  // namespace prisma
