// Packets over a Unix socket, with descriptors beside them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prisma/base/fd.h"
#include "prisma/wire/message.h"

namespace prisma::wire {

/// Connects to an engine's address: an abstract name, or a path where it starts with '/'. Refuses
/// one of another user. Throws std::system_error (ECONNREFUSED, EACCES, ...).
Fd connect_to(const std::string& address);

/// Listens at an address that nobody else has. Throws std::system_error (EADDRINUSE, ...).
Fd listen_at(const std::string& address);

/// Two ends of a connection within one process, as tests use them.
std::pair<Fd, Fd> connected_pair();

/// Who is at the other end.
struct Peer {
  std::int64_t pid = 0;
  std::uint32_t uid = 0;
};
Peer peer_of(const Fd& socket);

enum class Sent { kDone, kFull, kGone };

/// Never waits, never raises SIGPIPE. Throws std::length_error for what is longer than kMostBytes.
Sent send(const Fd& socket, const Message& message, std::span<const int> descriptors = {});

struct Received {
  std::optional<Message> message;  // nothing: not a message
  std::vector<Fd> descriptors;
};

enum class Trouble { kNothingYet, kGone };

/// Takes one packet, without waiting.
std::variant<Received, Trouble> receive(const Fd& socket);

}  // namespace prisma::wire
