#include "prisma/wire/socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "prisma/base/failure.h"

namespace prisma::wire {
namespace {

constexpr std::size_t kMostDescriptors = 4;

std::pair<sockaddr_un, socklen_t> socket_address(const std::string& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const bool is_path = address.starts_with('/');
  if (address.empty() || address.size() + 1 > sizeof(name.sun_path)) {
    errno = EINVAL;
    throw_errno("engine address");
  }
  std::memcpy(name.sun_path + (is_path ? 0 : 1), address.data(), address.size());
  return {name, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size())};
}

/// Not among the first descriptors: a program that closed 0 to 2 still prints there, and an engine
/// that is being started gets its own under these numbers.
Fd new_socket() {
  constexpr int kLowest = 4;
  const Fd lowest(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!lowest) throw_errno("socket");
  Fd socket(::fcntl(lowest.get(), F_DUPFD_CLOEXEC, kLowest));
  if (!socket) throw_errno("F_DUPFD_CLOEXEC");
  return socket;
}

std::vector<Fd> descriptors_of(msghdr& header) {
  std::vector<Fd> descriptors;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(number);
    }
  }
  return descriptors;
}

}  // namespace

Fd connect_to(const std::string& address) {
  Fd socket = new_socket();
  const auto [name, length] = socket_address(address);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    throw_errno("connect to engine");
  }
  if (peer_of(socket).uid != ::geteuid()) {
    errno = EACCES;
    throw_errno("the engine belongs to another user");
  }
  return socket;
}

Fd listen_at(const std::string& address) {
  constexpr int kBacklog = 4096;
  Fd socket = new_socket();
  const auto [name, length] = socket_address(address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    throw_errno("listen for clients");
  }
  return socket;
}

std::pair<Fd, Fd> connected_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_errno("socketpair");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

Peer peer_of(const Fd& socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    throw_errno("SO_PEERCRED");
  }
  return {credentials.pid, credentials.uid};
}

Sent send(const Fd& socket, const Message& message, std::span<const int> descriptors) {
  std::vector<std::byte> bytes = encode(message);
  if (bytes.size() > kMostBytes || descriptors.size() > kMostDescriptors) {
    throw std::length_error("a message that no receiver would take");
  }
  iovec piece{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> extra{};
  if (!descriptors.empty()) {
    header.msg_control = extra.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
  }
  while (::sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == ENOBUFS ? Sent::kFull : Sent::kGone;
  }
  return Sent::kDone;
}

std::variant<Received, Trouble> receive(const Fd& socket) {
  std::vector<std::byte> bytes(kMostBytes);
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> extra{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = extra.data();
  header.msg_controllen = extra.size();
  ssize_t got = ::recvmsg(socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  // A peer that died with something unread is told of first, before what it had sent.
  while (got < 0 && (errno == EINTR || errno == ECONNRESET)) {
    got = ::recvmsg(socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  }
  if (got < 0) return errno == EAGAIN ? Trouble::kNothingYet : Trouble::kGone;
  Received received{{}, descriptors_of(header)};
  if (got == 0) return Trouble::kGone;
  if ((header.msg_flags & MSG_TRUNC) == 0) {
    received.message = decode(std::span(bytes).first(static_cast<std::size_t>(got)));
  }
  return received;
}

}  // namespace prisma::wire
