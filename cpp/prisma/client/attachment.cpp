#include "prisma/client/attachment.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "prisma/base/failure.h"
#include "prisma/base/units.h"
#include "prisma/buffer/index.h"

namespace prisma {
namespace {

constexpr int kLookAfterMs = 100;
constexpr int kLooksForWelcome = 50;
constexpr std::size_t kPinsPerMessage = 16'000;  // as many as one packet can name

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

Attachment::Attachment(Fd socket, std::uint64_t session, const std::function<void()>& check)
    : socket_(std::move(socket)),
      user_(::geteuid()),
      group_(::getegid()),
      at_fork_({[this] { before_fork(); }, [this] { our_end_.reset(); },
                [this] { after_fork_in_child(); }}) {
  if (!send(wire::Hello{wire::kVersion, ::getpid(), session})) throw_errno("greet the engine");
  for (int looks = 0;; ++looks) {
    auto received = wire::receive(socket_);
    if (const auto* trouble = std::get_if<wire::Trouble>(&received)) {
      if (*trouble == wire::Trouble::kGone) {
        errno = ECONNRESET;
        throw_errno("the engine went away");
      }
      if (looks >= kLooksForWelcome) {
        errno = ETIMEDOUT;
        throw_errno("the engine does not answer");
      }
      await(socket_, POLLIN);
      if (check) check();
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
    engine_pid_ = welcome->engine_pid;
    data_ =
        Mapping(packet.descriptors[0], file_bytes(packet.descriptors[0]), Mapping::Access::kRead);
    control_ = Mapping(packet.descriptors[1], sizeof(ControlLayout), Mapping::Access::kReadWrite);
    bell_ = std::move(packet.descriptors[2]);
    ours_.store(true);
    return;
  }
}

bool Attachment::engine_lives() const { return still_open(socket_); }

bool Attachment::send(const wire::Message& message, std::span<const int> descriptors) const {
  std::optional<Patience> patience;
  while (true) {
    const wire::Sent sent = wire::send(socket_, message, descriptors);
    if (sent == wire::Sent::kDone) return true;
    if (sent == wire::Sent::kGone || !still_open(socket_)) return false;
    if (control_.data() != nullptr && !patience) patience.emplace(control().header.heartbeat);
    if (patience && patience->is_over()) return false;
    await(socket_, POLLOUT);
    // There may be place, and not enough for this message: then the wait was none.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Attachment::give_back(std::uint32_t entry, std::uint64_t bytes) const {
  if (!ours_.load(std::memory_order_relaxed)) return;  // a forked child holds nothing of its own
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

void Attachment::check_user() {
  if (::geteuid() != user_ || ::getegid() != group_) same_user_.store(false);
}

void Attachment::before_fork() {
  if (!ours_.load()) return;
  std::vector<std::uint32_t> held = pin_what_is_held();
  if (held.empty()) return;
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;  // pinned until this process has ended, then
  const Fd theirs(ends[0]);
  our_end_ = Fd(ends[1]);
  announce_pins(std::move(held), theirs);
}

std::vector<std::uint32_t> Attachment::pin_what_is_held() {
  std::vector<std::uint32_t> held;
  if (slot().leased_bytes.load(std::memory_order_relaxed) == 0) return held;
  for (std::uint32_t entry = 0; entry < kEntries; ++entry) {
    const auto pinned = change(control().entries[entry],
                               [this](EntryWord now) { return entry_client::pin(now, number_); });
    if (pinned) held.push_back(entry);
  }
  return held;
}

void Attachment::announce_pins(std::vector<std::uint32_t> entries, const Fd& end) const {
  const std::array<int, 1> descriptors{end.get()};
  while (!entries.empty()) {
    const std::size_t count = std::min(entries.size(), kPinsPerMessage);
    const auto first = entries.end() - static_cast<std::ptrdiff_t>(count);
    if (!send(wire::Pin{{first, entries.end()}}, descriptors)) return;
    entries.erase(first, entries.end());
  }
}

void Attachment::after_fork_in_child() {
  ours_.store(false, std::memory_order_relaxed);
  socket_.reset();
  bell_.reset();
  if (our_end_) inherited_.push_back(std::move(our_end_));
}

}  // namespace prisma
