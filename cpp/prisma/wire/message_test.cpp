#include "prisma/wire/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace prisma::wire {
namespace {

using Bytes = std::vector<std::byte>;

template <typename Kind>
Kind there_and_back(const Kind& message) {
  const auto decoded = decode(encode(message));
  EXPECT_TRUE(decoded && std::holds_alternative<Kind>(*decoded));
  return std::get<Kind>(*decoded);
}

Announce some_announce() {
  return {.plan = 3,
          .lane = 4,
          .named_by = NamedBy::kPath,
          .first_position = std::uint64_t{1} << 40,
          .samples = {{"/a", 0, kToTheEnd}, {"", 5, 6}, {"/\xff\x01 \n", UINT64_MAX, 0}}};
}

/// One message of each kind.
std::vector<Message> all_kinds() {
  return {Hello{1, 2, 3}, Welcome{1, 2, 3, 4}, some_announce(), Demand{5, 6}, Resume{7},
          Cancel{8, 9},   Pin{{1, 2, 3}},      Tune{10, 11},    Ping{12}};
}

TEST(Message, HelloAndWelcomeSurvive) {
  const auto hello = there_and_back(Hello{7, -8, UINT64_MAX});
  EXPECT_EQ(hello.version, 7u);
  EXPECT_EQ(hello.pid, -8);
  EXPECT_EQ(hello.session, UINT64_MAX);
  const auto welcome = there_and_back(Welcome{1, 65535, 2, 3});
  EXPECT_EQ(welcome.version, 1u);
  EXPECT_EQ(welcome.client, 65535);
  EXPECT_EQ(welcome.session, 2u);
  EXPECT_EQ(welcome.engine_pid, 3);
}

TEST(Message, AnnounceSurvivesWithNamesOfAnyBytes) {
  const Announce sent = some_announce();
  const Announce got = there_and_back(sent);
  EXPECT_EQ(got.plan, sent.plan);
  EXPECT_EQ(got.lane, sent.lane);
  EXPECT_EQ(got.named_by, sent.named_by);
  EXPECT_EQ(got.first_position, sent.first_position);
  EXPECT_EQ(got.samples, sent.samples);
  EXPECT_TRUE(there_and_back(Announce{}).samples.empty());
}

TEST(Message, AllOthersSurvive) {
  const auto demand = there_and_back(Demand{1, UINT32_MAX});
  EXPECT_EQ(demand.entry, 1u);
  EXPECT_EQ(demand.generation, UINT32_MAX);
  EXPECT_EQ(there_and_back(Resume{9}).entry, 9u);
  const auto cancel = there_and_back(Cancel{1, 2});
  EXPECT_EQ(cancel.plan, 1u);
  EXPECT_EQ(cancel.lane, 2u);
  EXPECT_EQ(there_and_back(Pin{{4, 5}}).entries, (std::vector<std::uint32_t>{4, 5}));
  EXPECT_TRUE(there_and_back(Pin{}).entries.empty());
  const auto tune = there_and_back(Tune{1, UINT64_MAX});
  EXPECT_EQ(tune.depth, 1u);
  EXPECT_EQ(tune.buffer_bytes, UINT64_MAX);
  EXPECT_EQ(there_and_back(Ping{99}).count, 99u);
}

TEST(Message, EveryKindIsTriedHere) {
  const std::vector<Message> kinds = all_kinds();
  ASSERT_EQ(kinds.size(), std::variant_size_v<Message>);
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(kinds[i].index(), i);
}

TEST(Message, CarriesNothingThatWasInMemoryBefore) {
  alignas(Hello) std::byte dirty[2][sizeof(Hello)];
  std::memset(dirty[0], 0xaa, sizeof(Hello));
  std::memset(dirty[1], 0x55, sizeof(Hello));
  const auto& one = *new (dirty[0]) Hello{1, 2, 3};
  const auto& other = *new (dirty[1]) Hello{1, 2, 3};
  EXPECT_EQ(encode(one), encode(other));
}

TEST(Message, ASampleAddsTheBytesThatItSays) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, kLongestPath}) {
    Announce announce;
    const std::size_t before = encode(announce).size();
    announce.samples.push_back({std::string(length, 'x'), 1, 2});
    EXPECT_EQ(encode(announce).size(), before + encoded_bytes(announce.samples[0]));
  }
}

TEST(Message, CutShortAnywhereIsNone) {
  for (const Message& message : all_kinds()) {
    const Bytes whole = encode(message);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(decode(std::span(whole).first(length))) << message.index() << " at " << length;
    }
  }
}

TEST(Message, WithBytesBehindItIsNone) {
  for (const Message& message : all_kinds()) {
    Bytes longer = encode(message);
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode(longer)) << message.index();
  }
}

TEST(Message, OfAKindThatDoesNotExistIsNone) {
  for (std::size_t kind = std::variant_size_v<Message>; kind < 256; ++kind) {
    for (const std::size_t length : {1, 5, 9, 17, 100}) {
      Bytes bytes(length);
      bytes[0] = static_cast<std::byte>(kind);
      EXPECT_FALSE(decode(bytes));
    }
  }
}

/// Puts a value into an encoded message.
template <typename T>
Bytes with(Bytes bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return bytes;
}

TEST(Message, WithImpossibleFieldsIsNone) {
  const Bytes announce = encode(Announce{.samples = {{"/abc", 0, 1}}});
  const std::size_t named_by = 1 + 4 + 4;
  const std::size_t count = named_by + 1 + 8;
  const std::size_t path_size = count + 4 + 16;
  ASSERT_TRUE(decode(announce));
  EXPECT_FALSE(decode(with(announce, named_by, std::uint8_t{2})));
  EXPECT_FALSE(decode(with(announce, count, std::uint32_t{2})));
  EXPECT_FALSE(decode(with(announce, count, UINT32_MAX)));
  EXPECT_FALSE(decode(with(announce, path_size, std::uint32_t{5})));
  EXPECT_FALSE(decode(with(announce, path_size, UINT32_MAX)));
  EXPECT_FALSE(decode(with(announce, path_size + 4 + 2, '\0')));
  EXPECT_FALSE(decode(with(encode(Pin{{1}}), 1, UINT32_MAX)));
}

TEST(Message, GarbageIsNoneOrAMessageThatMeansJustTheseBytes) {
  std::mt19937 random(11);
  const std::vector<Message> kinds = all_kinds();
  int understood = 0;
  for (int round = 0; round < 100'000; ++round) {
    Bytes bytes;
    if (round % 2 == 0) {  // a message with a few bytes changed, cut or added
      bytes = encode(kinds[random() % kinds.size()]);
      bytes.resize(bytes.size() + random() % 3 - std::min<std::size_t>(random() % 3, bytes.size()));
    } else {
      bytes.resize(random() % 80);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 256);
      if (!bytes.empty()) bytes[0] = static_cast<std::byte>(random() % 10);
    }
    for (std::uint32_t i = random() % 4; i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 256);
    }
    if (const auto message = decode(bytes)) {
      EXPECT_EQ(encode(*message), bytes);
      ++understood;
    }
  }
  EXPECT_GT(understood, 1'000);
}

}  // namespace
}  // namespace prisma::wire
