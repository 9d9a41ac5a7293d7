#include "prisma/client/attachment.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "prisma/base/failure.h"
#include "prisma/base/units.h"
#include "prisma/buffer/index.h"

namespace prisma {
namespace {

constexpr int kLookAfterMs = 100;

void await(const Fd& socket, short what) {
  pollfd wanted{socket.get(), what, 0};
  ::poll(&wanted, 1, kLookAfterMs);
}

bool still_open(const Fd& socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

Attachment::Attachment(Fd socket, std::uint64_t session)
    : socket_(std::move(socket)), pid_(::getpid()) {
  if (!send(wire::Hello{wire::kVersion, ::getpid(), session})) throw_errno("greet the engine");
  while (true) {
    auto received = wire::receive(socket_);
    if (const auto* trouble = std::get_if<wire::Trouble>(&received)) {
      if (*trouble == wire::Trouble::kGone) {
        errno = ECONNRESET;
        throw_errno("the engine went away");
      }
      await(socket_, POLLIN);
      continue;
    }
    auto& packet = std::get<wire::Received>(received);
    const auto* welcome = packet.message ? std::get_if<wire::Welcome>(&*packet.message) : nullptr;
    if (welcome == nullptr || welcome->version != wire::kVersion ||
        packet.descriptors.size() != 3) {
      errno = EPROTO;
      throw_errno("the engine speaks another version");
    }
    number_ = welcome->client;
    session_ = welcome->session;
    data_ =
        Mapping(packet.descriptors[0], file_bytes(packet.descriptors[0]), Mapping::Access::kRead);
    control_ = Mapping(packet.descriptors[1], sizeof(ControlLayout), Mapping::Access::kReadWrite);
    bell_ = std::move(packet.descriptors[2]);
    return;
  }
}

bool Attachment::is_ours() const { return ::getpid() == pid_; }

bool Attachment::engine_lives() const { return still_open(socket_); }

bool Attachment::send(const wire::Message& message) const {
  while (true) {
    const wire::Sent sent = wire::send(socket_, message);
    if (sent == wire::Sent::kDone) return true;
    if (sent == wire::Sent::kGone || !still_open(socket_)) return false;
    await(socket_, POLLOUT);
  }
}

void Attachment::give_back(std::uint32_t entry, std::uint64_t bytes) const {
  if (!is_ours()) return;  // a forked child holds nothing of its parent's
  Header& header = control().header;
  change(control().entries[entry],
         [this](EntryWord now) { return entry_client::give_back(now, number_); });
  slot().leased_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  header.leased_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  const std::uint64_t pages = whole_pages(bytes);
  const std::uint64_t released = header.released_bytes.fetch_add(pages) + pages;
  if (released < header.wake_at.load()) return;
  if (header.wake_at.exchange(kNeverWake) != kNeverWake) ::eventfd_write(bell_.get(), 1);
}

}  // namespace prisma
