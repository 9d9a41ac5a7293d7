#include "slowfs/control.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

#include "slowfs/words.h"

namespace prisma::slowfs {
namespace {

std::string set(const std::vector<std::string_view> &words, Filesystem &filesystem) {
  Behaviour behaviour = filesystem.behaviour();
  for (const auto word : words) change(behaviour, parse_word(word));
  filesystem.set_behaviour(behaviour);
  return "{}";
}

std::string add_rule(const std::vector<std::string_view> &words, Filesystem &filesystem) {
  const auto id = filesystem.faults().add(parse_rule(words));
  return "{\"id\": " + std::to_string(id) + "}";
}

std::string drop_rule(const std::vector<std::string_view> &words, Filesystem &filesystem) {
  for (const auto word : words) filesystem.release(count_of(parse_word(word)));
  return "{}";
}

std::string obey(std::string_view line, Filesystem &filesystem) {
  auto words = split(line);
  if (words.empty()) throw std::invalid_argument("an empty line");
  const auto verb = words.front();
  words.erase(words.begin());
  if (verb == "counters") return filesystem.counters().json();
  if (verb == "opens") return filesystem.counters().opens_by_path_json();
  if (verb == "set") return set(words, filesystem);
  if (verb == "rule") return add_rule(words, filesystem);
  if (verb == "drop") return drop_rule(words, filesystem);
  if (verb != "reset") throw std::invalid_argument("no command \"" + std::string(verb) + "\"");
  filesystem.counters().reset();
  return "{}";
}

/// Empty where there is no owner, or no pidfd to be had: then the socket's end
/// must do.
Fd watch(int owner_pid) {
  if (owner_pid == 0) return {};
  Fd owner(static_cast<int>(::syscall(SYS_pidfd_open, owner_pid, 0)));
  if (::getppid() != owner_pid) throw std::runtime_error("the owner is gone");
  return owner;
}

Fd block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

std::string carry_out(std::string_view line, Filesystem &filesystem) {
  try {
    return obey(line, filesystem);
  } catch (const std::invalid_argument &problem) {
    return "{\"error\": \"" + percent_encoded(problem.what()) + "\"}";
  }
}

Control::Control(int socket, int owner_pid, Filesystem &filesystem)
    : filesystem_(filesystem),
      socket_(socket),
      owner_(watch(owner_pid)),
      signals_(block_signals()),
      ended_(::eventfd(0, EFD_CLOEXEC)) {
  if (!signals_ || !ended_) throw std::system_error(errno, std::generic_category(), "control");
}

void Control::end() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(ended_.get(), &one, sizeof one);
}

void Control::run() {
  say("{}");  // mounted
  pollfd fds[] = {{ended_.get(), POLLIN, 0},
                  {signals_.get(), POLLIN, 0},
                  {owner_.get(), POLLIN, 0},  // poll passes over -1
                  {socket_.get(), POLLIN, 0}};
  while (true) {
    if (::poll(fds, std::size(fds), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0 || fds[1].revents != 0 || fds[2].revents != 0) return;
    if (fds[3].revents != 0 && !serve_owner()) return;
  }
}

bool Control::serve_owner() {
  char bytes[4096];
  const auto got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (got <= 0) return got < 0 && errno == EINTR;
  heard_.append(bytes, static_cast<std::size_t>(got));
  for (auto end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
    say(carry_out(std::string_view(heard_).substr(0, end), filesystem_));
    heard_.erase(0, end + 1);
  }
  return true;
}

void Control::say(std::string_view line) {
  std::string rest = std::string(line) + "\n";
  while (socket_ && !rest.empty()) {
    const auto sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return;  // nobody listens; the next poll tells
    if (sent > 0) rest.erase(0, static_cast<std::size_t>(sent));
  }
}

}  // namespace prisma::slowfs
