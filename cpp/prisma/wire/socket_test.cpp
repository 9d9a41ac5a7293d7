#include "prisma/wire/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "prisma/base/memory.h"
#include "prisma/base/testing/temporary_directory.h"
#include "prisma/base/units.h"

namespace prisma::wire {
namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// The error number that a call throws, or 0.
template <typename Call>
int thrown_by(Call call) {
  try {
    call();
    return 0;
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

/// Sends any bytes and descriptors as one packet.
void send_raw(const Fd& socket, std::span<const std::byte> bytes, std::vector<int> numbers = {}) {
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, 256> extra{};
  if (!numbers.empty()) {
    const std::size_t size = numbers.size() * sizeof(int);
    header.msg_control = extra.data();
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(item), numbers.data(), size);
  }
  ASSERT_EQ(::sendmsg(socket.get(), &header, 0), static_cast<ssize_t>(bytes.size()));
}

/// The next Ping's count, or what came instead: -1 no Ping, -2 nothing yet, -3 gone.
int next_ping(const Fd& socket) {
  const auto outcome = receive(socket);
  if (const auto* trouble = std::get_if<Trouble>(&outcome)) {
    return *trouble == Trouble::kNothingYet ? -2 : -3;
  }
  const auto& message = std::get<Received>(outcome).message;
  if (!message || !std::holds_alternative<Ping>(*message)) return -1;
  return static_cast<int>(std::get<Ping>(*message).count);
}

class SocketTest : public ::testing::Test {
 protected:
  std::pair<Fd, Fd> ends_ = connected_pair();
  Fd& here_ = ends_.first;
  Fd& there_ = ends_.second;
};

TEST_F(SocketTest, MessagesArriveInOrderAndOneByOne) {
  EXPECT_EQ(next_ping(there_), -2);
  EXPECT_EQ(send(here_, Ping{1}), Sent::kDone);
  EXPECT_EQ(send(here_, Ping{2}), Sent::kDone);
  EXPECT_EQ(next_ping(there_), 1);
  EXPECT_EQ(next_ping(there_), 2);
  EXPECT_EQ(next_ping(there_), -2);
}

TEST_F(SocketTest, DescriptorsTravelBesideAMessage) {
  const Fd memory = sealed_memfd("test", kPage);
  const Mapping mapping(memory, kPage, Mapping::Access::kReadWrite);
  const std::vector<int> numbers(4, memory.get());
  ASSERT_EQ(send(here_, Ping{1}, numbers), Sent::kDone);
  const auto outcome = receive(there_);
  const auto& received = std::get<Received>(outcome);
  ASSERT_TRUE(received.message);
  ASSERT_EQ(received.descriptors.size(), 4u);
  mapping.data()[7] = std::byte{42};
  for (const Fd& fd : received.descriptors) {
    EXPECT_NE(fd.get(), memory.get());
    EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    std::byte seen{};
    EXPECT_EQ(::pread(fd.get(), &seen, 1, 7), 1);
    EXPECT_EQ(seen, std::byte{42});
  }
}

TEST_F(SocketTest, ADescriptorThatCameClosesWithItsOwner) {
  Fd reader, writer;
  {
    std::array<int, 2> numbers{};
    ASSERT_EQ(::pipe2(numbers.data(), O_CLOEXEC | O_NONBLOCK), 0);
    reader = Fd(numbers[0]);
    writer = Fd(numbers[1]);
  }
  ASSERT_EQ(send(here_, Pin{{1}}, std::array{writer.get()}), Sent::kDone);
  writer.reset();
  pollfd end{reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0) << "still open, on its way";
  receive(there_);
  EXPECT_EQ(::poll(&end, 1, 0), 1);
  EXPECT_NE(end.revents & POLLHUP, 0);
}

TEST_F(SocketTest, APeerThatIsGoneIsToldAndRaisesNoSignal) {
  there_.reset();
  EXPECT_EQ(send(here_, Ping{1}), Sent::kGone);
  EXPECT_EQ(next_ping(here_), -3);
}

TEST_F(SocketTest, WhatWasSentBeforeTheEndIsStillReceived) {
  send(here_, Ping{1});
  send(here_, Ping{2});
  here_.reset();
  EXPECT_EQ(next_ping(there_), 1);
  EXPECT_EQ(next_ping(there_), 2);
  EXPECT_EQ(next_ping(there_), -3);
}

TEST_F(SocketTest, WhatWasSentBeforeTheEndIsReceivedEvenIfItsSenderLeftSomethingUnread) {
  send(there_, Ping{9});
  send(here_, Ping{1});
  send(here_, Ping{2});
  here_.reset();
  EXPECT_EQ(next_ping(there_), 1);
  EXPECT_EQ(next_ping(there_), 2);
  EXPECT_EQ(next_ping(there_), -3);
}

TEST_F(SocketTest, AFullSocketIsToldAndLosesNothing) {
  int sent = 0;
  while (send(here_, Ping{static_cast<std::uint64_t>(sent)}) == Sent::kDone) ++sent;
  EXPECT_GT(sent, 16);
  EXPECT_EQ(send(here_, Ping{0}), Sent::kFull);
  for (int i = 0; i < sent; ++i) ASSERT_EQ(next_ping(there_), i);
  EXPECT_EQ(next_ping(there_), -2);
  EXPECT_EQ(send(here_, Ping{5}), Sent::kDone);
  EXPECT_EQ(next_ping(there_), 5);
}

TEST_F(SocketTest, GarbageIsNoMessageAndDoesNoHarm) {
  send_raw(here_, std::vector<std::byte>(100, std::byte{0xff}));
  send(here_, Ping{1});
  EXPECT_EQ(next_ping(there_), -1);
  EXPECT_EQ(next_ping(there_), 1);
}

/// An Announce that fills a packet to the last byte.
Announce largest_announce() {
  Announce announce;
  std::size_t left = kMostBytes - encode(announce).size();
  while (left > 0) {
    const std::size_t bytes = left > 2 * kLongestPath ? kLongestPath : left;
    announce.samples.push_back({std::string(bytes - encoded_bytes(Sample{}), 'x'), 0, 1});
    left -= bytes;
  }
  return announce;
}

TEST_F(SocketTest, TheLargestMessageArrivesWhole) {
  const Announce announce = largest_announce();
  ASSERT_EQ(encode(announce).size(), kMostBytes);
  ASSERT_EQ(send(here_, announce), Sent::kDone);
  const auto outcome = receive(there_);
  const auto& message = std::get<Received>(outcome).message;
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<Announce>(*message).samples, announce.samples);
}

TEST_F(SocketTest, APacketThatIsTooLongIsNotTakenForItsBeginning) {
  std::vector<std::byte> bytes = encode(largest_announce());
  bytes.push_back(std::byte{0});
  send_raw(here_, bytes);
  send(here_, Ping{1});
  const auto outcome = receive(there_);
  EXPECT_FALSE(std::get<Received>(outcome).message);
  EXPECT_EQ(next_ping(there_), 1);
}

TEST_F(SocketTest, WhatNoReceiverWouldTakeIsNotSent) {
  Pin pin;
  pin.entries.resize(kMostBytes / sizeof(std::uint32_t));
  EXPECT_THROW(send(here_, pin), std::length_error);
  const std::vector<int> numbers(5, here_.get());
  EXPECT_THROW(send(here_, Ping{1}, numbers), std::length_error);
  EXPECT_EQ(next_ping(there_), -2);
}

TEST_F(SocketTest, NoDescriptorIsLostWithAPacketThatIsNoMessage) {
  const std::size_t before = open_descriptors();
  const int number = here_.get();
  send_raw(here_, std::vector<std::byte>(3, std::byte{0xff}), {number, number});
  send_raw(here_, encode(Ping{1}), {number, number, number, number, number, number, number});
  send_raw(here_, {}, {number});
  while (!std::holds_alternative<Trouble>(receive(there_))) {
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SocketTest, TellsWhoIsAtTheOtherEnd) {
  EXPECT_EQ(peer_of(here_).pid, ::getpid());
  EXPECT_EQ(peer_of(here_).uid, ::geteuid());
}

std::string own_address(const char* what) {
  return std::string("prisma-test-") + what + "-" + std::to_string(::getpid());
}

TEST(ListenAt, RefusesAnAddressThatIsTaken) {
  const std::string address = own_address("taken");
  const Fd listener = listen_at(address);
  EXPECT_EQ(thrown_by([&] { listen_at(address); }), EADDRINUSE);
}

TEST(ListenAt, LeavesTheFirstDescriptorsToTheProgram) {
  const Fd listener = listen_at(own_address("first"));
  const Fd client = connect_to(own_address("first"));
  EXPECT_GT(listener.get(), 3);
  EXPECT_GT(client.get(), 3);
}

TEST(ConnectTo, ReachesAnAbstractNameAndAPath) {
  const testing::TemporaryDirectory directory;
  for (const std::string& address : {own_address("reach"), directory.path("socket")}) {
    const Fd listener = listen_at(address);
    const Fd client = connect_to(address);
    const Fd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    send(client, Ping{3});
    EXPECT_EQ(next_ping(server), 3);
  }
}

TEST(ConnectTo, SaysWhyItCanNot) {
  const testing::TemporaryDirectory directory;
  EXPECT_EQ(thrown_by([] { connect_to(own_address("nobody")); }), ECONNREFUSED);
  EXPECT_EQ(thrown_by([&] { connect_to(directory.path("absent")); }), ENOENT);
  EXPECT_EQ(thrown_by([] { connect_to(""); }), EINVAL);
  EXPECT_EQ(thrown_by([] { connect_to(std::string(200, 'x')); }), EINVAL);
}

TEST(ConnectTo, RefusesTheEngineOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string address = own_address("other");
  auto [ready, told] = connected_pair();
  const pid_t child = ::fork();
  if (child == 0) {
    ready.reset();
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    const Fd listener = listen_at(address);
    send(told, Ping{1});
    pollfd end{told.get(), POLLIN, 0};
    ::poll(&end, 1, 30'000);  // until the test is over
    ::_exit(0);
  }
  told.reset();
  pollfd listening{ready.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&listening, 1, 30'000), 1);
  EXPECT_EQ(thrown_by([&] { connect_to(address); }), EACCES);
  ready.reset();
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace prisma::wire
