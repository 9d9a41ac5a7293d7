#include "prisma/engine/server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <chrono>
#include <utility>

#include "prisma/base/failure.h"
#include "prisma/base/futex.h"

namespace prisma {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kFirstClientWithin = std::chrono::seconds(10);

// What an event is about: a client's number, its process, or one of these.
constexpr std::uint64_t kListener = 1ull << 32;
constexpr std::uint64_t kBell = 2ull << 32;
constexpr std::uint64_t kProcess = 3ull << 32;
constexpr std::uint64_t kFork = 1ull << 48;  // and the number of the fork

Fd watch_process(std::int64_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace

Server::Server(Fd listener, SharedFiles files, Scheduler& scheduler, ControlLayout& control,
               std::function<void()> each_tick)
    : listener_(std::move(listener)),
      files_(std::move(files)),
      scheduler_(scheduler),
      control_(control),
      each_tick_(std::move(each_tick)),
      events_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_) throw_errno("epoll_create1");
  if (listener_) {
    if (::fcntl(listener_.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno("F_SETFL");
    watch(listener_, kListener);
  }
  watch(files_.bell, kBell);
}

void Server::watch(const Fd& fd, std::uint64_t what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = what;
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) throw_errno("epoll_ctl");
}

void Server::run() {
  const auto started = Clock::now();
  auto last_tick = started;
  while (!connections_.empty() || (!had_clients_ && Clock::now() - started < kFirstClientWithin)) {
    serve_once();
    const std::chrono::duration<double> since = Clock::now() - last_tick;
    if (since >= kTick) {
      last_tick = Clock::now();
      drain();
      control_.header.heartbeat.fetch_add(1);
      scheduler_.tick(since.count());
      each_tick_();
    }
  }
}

void Server::serve_once() {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(kTick.count()));
  for (int i = 0; i < count; ++i) handle(events.at(static_cast<std::size_t>(i)).data.u64);
  bury_the_gone();
}

void Server::handle(std::uint64_t what) {
  if (what == kListener) return accept_all();
  if (what == kBell) {
    eventfd_t rings = 0;
    ::eventfd_read(files_.bell.get(), &rings);
    return scheduler_.look_around();
  }
  if ((what & kFork) != 0) return unpin(what & ~kFork);
  const auto found = connections_.find(static_cast<ClientId>(what & 0xffff));
  if (found == connections_.end()) return;
  read_all(found->second);
  if ((what & ~std::uint64_t{0xffff}) == kProcess) found->second.gone = true;
}

void Server::accept_all() {
  while (true) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return;
    welcome(std::move(socket));
  }
}

void Server::welcome(Fd socket) {
  const wire::Peer peer = wire::peer_of(socket);
  const ClientId number = free_number();
  if (peer.uid != ::geteuid() || number == 0) return;  // its end of the connection tells
  Connection& connection = connections_[number];
  connection.id = number;
  connection.socket = std::move(socket);
  connection.process = watch_process(peer.pid);
  watch(connection.socket, number);
  if (connection.process) watch(connection.process, kProcess | number);
  had_clients_ = true;
  control_.header.counters.clients.store(connections_.size(), std::memory_order_relaxed);
}

ClientId Server::free_number() const {
  for (ClientId number = 1; number < kClients; ++number) {
    if (!connections_.contains(number)) return number;
  }
  return 0;
}

void Server::read_all(Connection& connection) {
  while (!connection.gone) {
    auto received = wire::receive(connection.socket);
    if (const auto* trouble = std::get_if<wire::Trouble>(&received)) {
      connection.gone = *trouble == wire::Trouble::kGone;
      return;
    }
    auto& packet = std::get<wire::Received>(received);
    if (!packet.message) {
      connection.gone = true;  // speaks another language
      return;
    }
    obey(connection, packet);
  }
}

void Server::obey(Connection& connection, wire::Received& packet) {
  const wire::Message& message = *packet.message;
  if (const auto* hello = std::get_if<wire::Hello>(&message)) return greet(connection, *hello);
  if (!connection.greeted) return;
  if (const auto* announce = std::get_if<wire::Announce>(&message)) {
    scheduler_.announce(connection.id, connection.session, *announce);
    auto& announced = control_.clients[connection.id].announced;
    announced.fetch_add(1);
    futex_wake_all(&announced);
  } else if (const auto* demand = std::get_if<wire::Demand>(&message)) {
    scheduler_.demand(*demand);
  } else if (const auto* resume = std::get_if<wire::Resume>(&message)) {
    scheduler_.resume(*resume);
  } else if (const auto* cancel = std::get_if<wire::Cancel>(&message)) {
    scheduler_.cancel(connection.id, *cancel);
  } else if (const auto* tune = std::get_if<wire::Tune>(&message)) {
    scheduler_.tune(*tune);
  } else if (const auto* pinned = std::get_if<wire::Pin>(&message)) {
    pin(connection, *pinned, std::move(packet.descriptors));
  }
}

/// Without the descriptor (this process had none left to take it) nothing tells when the child has
/// let go: the entries stay as long as this engine.
void Server::pin(Connection& connection, const wire::Pin& pin, std::vector<Fd> ends) {
  std::vector<EntryId> entries = scheduler_.pin(connection.id, pin);
  if (ends.size() != 1 || entries.empty()) return;
  const std::uint64_t fork = next_fork_++;
  Inherited& inherited = inherited_[fork];
  inherited = {std::move(ends.front()), std::move(entries)};
  watch(inherited.end, kFork | fork);
}

void Server::unpin(std::uint64_t fork) {
  const auto found = inherited_.find(fork);
  if (found == inherited_.end()) return;
  scheduler_.unpin(found->second.entries);
  inherited_.erase(found);
}

/// Reads all that was sent before now, whoever sent it, so that a pinned entry which is given back
/// and of which nobody speaks any more can go.
void Server::drain() {
  scheduler_.begin_drain();
  for (auto& [number, connection] : connections_) read_all(connection);
  scheduler_.end_drain();
}

void Server::greet(Connection& connection, const wire::Hello& hello) {
  connection.session = hello.session != 0 ? hello.session : next_session_++;
  wire::Welcome welcome;
  welcome.client = connection.id;
  welcome.session = connection.session;
  welcome.engine_pid = ::getpid();
  const std::array<int, 3> files{files_.data.get(), files_.control.get(), files_.bell.get()};
  connection.greeted = hello.version == wire::kVersion;
  control_.clients[connection.id].announced.store(0);
  if (wire::send(connection.socket, welcome, files) != wire::Sent::kDone) connection.gone = true;
}

void Server::bury_the_gone() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!at->second.gone) {
      ++at;
      continue;
    }
    scheduler_.client_gone(at->first);
    at = connections_.erase(at);
  }
  control_.header.counters.clients.store(connections_.size(), std::memory_order_relaxed);
}

}  // namespace prisma
