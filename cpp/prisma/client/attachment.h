// One process's hold on an engine: the socket, the shared memory, and a number.
#pragma once

#include <cstdint>
#include <memory>

#include "prisma/base/fd.h"
#include "prisma/base/memory.h"
#include "prisma/buffer/layout.h"
#include "prisma/wire/socket.h"

namespace prisma {

class Attachment {
 public:
  /// Greets the engine at the other end. Throws std::system_error when there is none, or when it
  /// speaks another version (EPROTO).
  Attachment(Fd socket, std::uint64_t session);

  ControlLayout& control() const { return *reinterpret_cast<ControlLayout*>(control_.data()); }
  ClientSlot& slot() const { return control().clients[number_]; }
  const std::byte* data() const { return data_.data(); }
  ClientId number() const { return number_; }
  std::uint64_t session() const { return session_; }

  /// Whether this is the process that attached: a forked child must attach anew.
  bool is_ours() const;

  /// Whether the engine still has its end of the connection.
  bool engine_lives() const;

  /// Sends, waiting for the engine to make place for it. False: it is gone.
  bool send(const wire::Message& message) const;

  /// Gives an entry back that this client holds, and rings if the engine waits for that.
  void give_back(std::uint32_t entry, std::uint64_t bytes) const;

 private:
  Fd socket_, bell_;
  Mapping data_, control_;
  ClientId number_ = 0;
  std::uint64_t session_ = 0;
  std::int64_t pid_ = 0;
};

}  // namespace prisma
