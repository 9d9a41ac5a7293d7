#include "prisma/buffer/sample_name.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "prisma/base/file.h"

namespace prisma {
namespace {

constexpr HashKey kKey{1, 2};

TEST(SampleName, ByPathTellsEveryPartApart) {
  std::set<Hash128> names;
  for (const HashKey& key : {kKey, HashKey{2, 1}}) {
    for (const std::uint64_t session : {1, 2}) {
      for (const char* path : {"/a", "/b", "/a/", "", "/a\xff", "/a\xfe"}) {
        for (const std::uint64_t offset : {0, 1}) {
          for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, kToTheEnd}) {
            names.insert(name_by_path(key, session, path, offset, length));
          }
        }
      }
    }
  }
  EXPECT_EQ(names.size(), 2u * 2 * 6 * 2 * 3);
}

TEST(SampleName, ByPathIsTheSameForShortAndLongPathsWhereverTheyLie) {
  std::set<Hash128> names;
  for (std::size_t length = 0; length < 1'200; ++length) {
    const std::string path(length, 'x');
    const std::string copy = path;
    EXPECT_EQ(name_by_path(kKey, 1, path, 0, 5), name_by_path(kKey, 1, copy, 0, 5));
    names.insert(name_by_path(kKey, 1, path, 0, 5));
  }
  EXPECT_EQ(names.size(), 1'200u);
}

TEST(SampleName, ByPathHeedsTheLastByteOfAPathOfAnyLength) {
  for (const std::size_t length : {1, 479, 480, 481, 5'000}) {
    const std::string one(length, 'x');
    std::string other = one;
    other.back() = 'y';
    EXPECT_NE(name_by_path(kKey, 1, one, 0, 5), name_by_path(kKey, 1, other, 0, 5)) << length;
  }
}

TEST(SampleName, ByPositionTellsEveryPartApart) {
  std::set<Hash128> names;
  for (const std::uint64_t client : {1, 2}) {
    for (const std::uint32_t plan : {0u, 1u, UINT32_MAX}) {
      for (const std::uint32_t lane : {0u, 1u, UINT32_MAX}) {
        for (const std::uint64_t position : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
          names.insert(name_by_position(kKey, client, plan, lane, position));
        }
      }
    }
  }
  EXPECT_EQ(names.size(), 2u * 3 * 3 * 2);
}

TEST(SampleName, OfAChunkTellsEveryPartApart) {
  std::set<Hash128> names;
  for (const std::uint32_t entry : {0, 1}) {
    for (const std::uint32_t generation : {0, 1}) {
      for (const std::uint64_t chunk : {0, 1}) {
        names.insert(name_of_chunk(kKey, entry, generation, chunk));
      }
    }
  }
  EXPECT_EQ(names.size(), 8u);
}

TEST(SampleName, OfDifferentSortsNeverMeet) {
  EXPECT_NE(name_by_position(kKey, 1, 0, 2, 3), name_of_chunk(kKey, 1, 2, 3));
  EXPECT_NE(name_by_path(kKey, 1, "", 2, 3), name_of_chunk(kKey, 1, 2, 3));
  EXPECT_NE(name_by_path(kKey, 1, "", 2, 3), name_by_position(kKey, 1, 0, 2, 3));
}

}  // namespace
}  // namespace prisma
