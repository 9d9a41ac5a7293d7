#include "prisma/base/siphash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace prisma {
namespace {

std::vector<std::byte> counting(std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

std::string hex(const Hash128& hash) {
  unsigned char bytes[sizeof(hash)];
  std::memcpy(bytes, hash.data(), sizeof(hash));
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// The key 00 01 .. 0f.
constexpr HashKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

// What the reference gives for 00 01 02 .. of each length.
const struct {
  std::size_t length;
  const char* hash;
} kVectors[] = {
    {0, "a3817f04ba25a8e66df67214c7550293"},  {1, "da87c1d86b99af44347659119b22fc45"},
    {2, "8177228da4a45dc7fca38bdef60affe4"},  {3, "9c70b60c5267a94e5f33b6b02985ed51"},
    {4, "f88164c12d9c8faf7d0f6e7c7bcd5579"},  {5, "1368875980776f8854527a07690e9627"},
    {6, "14eeca338b208613485ea0308fd7a15e"},  {7, "a1f1ebbed8dbc153c0b84aa61ff08239"},
    {8, "3b62a9ba6258f5610f83e264f31497b4"},  {9, "264499060ad9baabc47f8b02bb6d71ed"},
    {10, "00110dc378146956c95447d3f3d0fbba"}, {11, "0151c568386b6677a2b4dc6f81e5dc18"},
    {12, "d626b266905ef35882634df68532c125"}, {13, "9869e247e9c08b10d029934fc4b952f7"},
    {14, "31fcefac66d7de9c7ec7485fe4494902"}, {15, "5493e99933b0a8117e08ec0f97cfc3d9"},
    {16, "6ee2a4ca67b054bbfd3315bf85230577"}, {17, "473d06e8738db89854c066c47ae47740"},
    {31, "2939b0183223fafc1723de4f52c43d35"}, {32, "7c3956ca5eeafc3e363e9d556546eb68"},
    {63, "5150d1772f50834a503e069a973fbd7c"},
};

TEST(SipHash, GivesWhatTheReferenceGives) {
  for (const auto& [length, hash] : kVectors) {
    EXPECT_EQ(hex(siphash128(kKey, counting(length))), hash) << length << " bytes";
  }
}

TEST(SipHash, DoesNotDependOnWhereTheBytesLie) {
  const std::vector<std::byte> bytes = counting(40);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> moved(shift);
    moved.insert(moved.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(siphash128(kKey, std::span(moved).subspan(shift)), siphash128(kKey, bytes));
  }
}

TEST(SipHash, TellsKeysAndLengthsApart) {
  std::set<Hash128> seen;
  for (std::size_t length = 0; length < 600; ++length) {
    const std::vector<std::byte> zeros(length);
    seen.insert(siphash128(kKey, zeros));
    seen.insert(siphash128({kKey[0], kKey[1] + 1}, zeros));
    seen.insert(siphash128({kKey[0] + 1, kKey[1]}, zeros));
  }
  EXPECT_EQ(seen.size(), 3 * 600u);
}

}  // namespace
}  // namespace prisma
