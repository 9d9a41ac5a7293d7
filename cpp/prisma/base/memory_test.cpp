#include "prisma/base/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "prisma/base/units.h"

namespace prisma {
namespace {

constexpr std::uint64_t kBytes = 1_MiB;

std::uint64_t bytes_in_memory(const Fd& file) {
  struct stat status {};
  EXPECT_EQ(::fstat(file.get(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
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

TEST(SealedMemfd, HasItsSizeAndTakesNoMemoryBeforeItIsTouched) {
  const Fd file = sealed_memfd("test", kBytes);
  EXPECT_EQ(file_bytes(file), kBytes);
  EXPECT_EQ(bytes_in_memory(file), 0u);
}

TEST(SealedMemfd, CanNeitherShrinkNorGrow) {
  const Fd file = sealed_memfd("test", kBytes);
  EXPECT_EQ(::ftruncate(file.get(), kBytes / 2), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(file.get(), kBytes * 2), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SealedMemfd, IsNotInheritedThroughExec) {
  const Fd file = sealed_memfd("test", kBytes);
  const Fd reader = reopened_read_only(file);
  EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(reader.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SealedMemfd, OfAnImpossibleSizeIsAnError) {
  EXPECT_NE(thrown_by([] { sealed_memfd("test", UINT64_MAX); }), 0);
}

TEST(ReopenedReadOnly, ShowsTheSameBytes) {
  const Fd file = sealed_memfd("test", kBytes);
  const Fd reader = reopened_read_only(file);
  const Mapping writable(file, kBytes, Mapping::Access::kReadWrite);
  const Mapping readable(reader, kBytes, Mapping::Access::kRead);
  std::strcpy(reinterpret_cast<char*>(writable.data()), "a sample");
  EXPECT_STREQ(reinterpret_cast<const char*>(readable.data()), "a sample");
}

TEST(ReopenedReadOnly, CanNotBeWrittenInAnyWay) {
  const Fd reader = reopened_read_only(sealed_memfd("test", kBytes));
  EXPECT_EQ(thrown_by([&] { Mapping(reader, kBytes, Mapping::Access::kReadWrite); }), EACCES);
  EXPECT_EQ(::pwrite(reader.get(), "x", 1, 0), -1);
  EXPECT_EQ(::fcntl(reader.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  const Mapping readable(reader, kBytes, Mapping::Access::kRead);
  EXPECT_EQ(::mprotect(readable.data(), kBytes, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST(SealedMemfd, GivesMemoryBackWhenHolesArePunchedUnderItsReaders) {
  const Fd file = sealed_memfd("test", kBytes);
  const Mapping writable(file, kBytes, Mapping::Access::kReadWrite);
  const Mapping readable(reopened_read_only(file), kBytes, Mapping::Access::kRead);
  std::memset(writable.data(), 1, kBytes);
  EXPECT_EQ(bytes_in_memory(file), kBytes);
  ASSERT_EQ(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kPage, kPage * 3),
            0);
  EXPECT_EQ(bytes_in_memory(file), kBytes - kPage * 3);
  EXPECT_EQ(readable.data()[kPage - 1], std::byte{1});
  EXPECT_EQ(readable.data()[kPage], std::byte{0});
  EXPECT_EQ(readable.data()[kPage * 4], std::byte{1});
}

TEST(Mapping, OutlivesItsDescriptor) {
  Fd file = sealed_memfd("test", kBytes);
  const Mapping mapping(file, kBytes, Mapping::Access::kReadWrite);
  file.reset();
  mapping.data()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(mapping.data()[kBytes - 1], std::byte{7});
}

bool is_mapped(const std::byte* page) {
  return ::msync(const_cast<std::byte*>(page), kPage, MS_ASYNC) == 0;
}

TEST(Mapping, IsUnmappedOnceHoweverItMoved) {
  const Fd file = sealed_memfd("test", kBytes);
  const std::byte* start = nullptr;
  {
    Mapping first(file, kBytes, Mapping::Access::kRead);
    start = first.data();
    Mapping second(std::move(first));
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    Mapping third;
    third = std::move(second);
    EXPECT_EQ(third.data(), start);
    EXPECT_EQ(third.size(), kBytes);
    EXPECT_TRUE(is_mapped(start));
  }
  EXPECT_FALSE(is_mapped(start));
}

TEST(Mapping, OfNoFileIsAnError) {
  EXPECT_EQ(thrown_by([] { Mapping(Fd(), kBytes, Mapping::Access::kRead); }), EBADF);
  EXPECT_EQ(thrown_by([] { file_bytes(Fd()); }), EBADF);
}

}  // namespace
}  // namespace prisma
