#include "prisma/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prisma/base/memory.h"
#include "prisma/base/testing/temporary_directory.h"
#include "prisma/base/units.h"

namespace prisma {
namespace {

using testing::TemporaryDirectory;

/// The error number of an outcome, or 0.
template <typename Outcome>
int error_of(const Outcome& outcome) {
  const auto* error = std::get_if<ErrorNumber>(&outcome);
  return error == nullptr ? 0 : error->value;
}

OpenFile opened(const std::string& path) { return std::get<OpenFile>(open_file(path.c_str())); }

std::string read_text(const Fd& fd, std::uint64_t bytes, std::uint64_t offset) {
  std::string text(bytes, '?');
  const auto got = read_at(fd, reinterpret_cast<std::byte*>(text.data()), bytes, offset);
  text.resize(std::get<std::uint64_t>(got));
  return text;
}

TEST(OpenFile, TellsSizeAndKind) {
  const TemporaryDirectory directory;
  const OpenFile file = opened(directory.file("sample", "12345"));
  EXPECT_EQ(file.stamp.size, 5u);
  EXPECT_TRUE(file.stamp.regular);
  EXPECT_NE(::fcntl(file.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(OpenFile, FailsAsPythonsOpenDoes) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("file", "");
  std::filesystem::create_symlink("loop", directory.path("loop"));
  EXPECT_EQ(error_of(open_file(directory.path("absent").c_str())), ENOENT);
  EXPECT_EQ(error_of(open_file(directory.path("").c_str())), EISDIR);
  EXPECT_EQ(error_of(open_file((file + "/below").c_str())), ENOTDIR);
  EXPECT_EQ(error_of(open_file(directory.path("loop").c_str())), ELOOP);
  EXPECT_EQ(error_of(open_file(directory.path(std::string(300, 'x')).c_str())), ENAMETOOLONG);
  EXPECT_EQ(error_of(open_file("")), ENOENT);
}

TEST(OpenFile, FailsWithEaccesForWhoMayNotRead) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("secret", "x");
  ASSERT_EQ(::chmod(directory.path("").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(255);
    ::_exit(error_of(open_file(file.c_str())));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), EACCES);
}

TEST(OpenFile, DoesNotBlockOnAPipeThatNobodyWrites) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(opened(path).stamp.regular);
}

TEST(OpenFile, TakesNamesOfAnyBytes) {
  const TemporaryDirectory directory;
  for (const char* name : {"\xff\xfe", " ", "a\nb", "\x01", "\xc3\x28"}) {
    EXPECT_EQ(opened(directory.file(name, "abc")).stamp.size, 3u);
  }
}

TEST(FileStamp, TellsChangedContentApart) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("sample", "old");
  const OpenFile file = opened(path);
  EXPECT_EQ(std::get<FileStamp>(stamp_of(file.fd)), file.stamp);
  directory.file("sample", "older");
  EXPECT_NE(std::get<FileStamp>(stamp_of(file.fd)), file.stamp);
  EXPECT_EQ(error_of(stamp_of(Fd())), EBADF);
}

TEST(FileStamp, TellsAFileFromTheOneThatTookItsPlace) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("sample", "old");
  const OpenFile before = opened(path);
  const std::string other = directory.file("other", "new");
  const timespec times[2] = {
      {0, UTIME_OMIT},
      {before.stamp.changed_ns / 1'000'000'000, before.stamp.changed_ns % 1'000'000'000}};
  ASSERT_EQ(::utimensat(AT_FDCWD, other.c_str(), times, 0), 0);
  std::filesystem::rename(other, path);
  EXPECT_NE(opened(path).stamp, before.stamp);
}

TEST(FileStamp, SurvivesTimesFarFromNow) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("sample", "x");
  for (const std::int64_t seconds : {std::int64_t{-2'000'000'000}, std::int64_t{10'000'000'000}}) {
    const timespec times[2] = {{0, UTIME_OMIT}, {seconds, 1}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    const OpenFile first = opened(path);
    EXPECT_EQ(opened(path).stamp, first.stamp);
    const timespec later[2] = {{0, UTIME_OMIT}, {seconds + 1, 1}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), later, 0), 0);
    EXPECT_NE(opened(path).stamp, first.stamp);
  }
}

TEST(ReadAt, GivesWhatIsThereAndNoMore) {
  const TemporaryDirectory directory;
  const OpenFile file = opened(directory.file("sample", "0123456789"));
  EXPECT_EQ(read_text(file.fd, 10, 0), "0123456789");
  EXPECT_EQ(read_text(file.fd, 4, 3), "3456");
  EXPECT_EQ(read_text(file.fd, 100, 8), "89");
  EXPECT_EQ(read_text(file.fd, 5, 10), "");
  EXPECT_EQ(read_text(file.fd, 5, 1'000'000), "");
  EXPECT_EQ(read_text(file.fd, 0, 0), "");
}

TEST(ReadAt, ReportsErrorsAsNumbers) {
  const TemporaryDirectory directory;
  const OpenFile file = opened(directory.file("sample", "0123456789"));
  std::byte to[8];
  EXPECT_EQ(error_of(read_at(Fd(), to, 8, 0)), EBADF);
  EXPECT_EQ(error_of(read_at(file.fd, to, 8, UINT64_MAX - 7)), EINVAL);
  EXPECT_EQ(error_of(read_at(file.fd, nullptr, 8, 0)), EFAULT);
}

TEST(ReadAt, ReachesBeyondTwoGibibytes) {
  const Fd file = sealed_memfd("sparse", 5_GiB);
  const Mapping mapping(file, 5_GiB, Mapping::Access::kReadWrite);
  std::memcpy(mapping.data() + 5_GiB - 3, "end", 3);
  EXPECT_EQ(read_text(file, 100, 5_GiB - 3), "end");
}

#ifndef __SANITIZE_THREAD__  // keeps a shadow of every byte that is read
/// Room for more bytes than there is memory for: the same few pages over and over.
class EndlessRoom {
 public:
  // No part of a GiB, so that bytes that end up in the wrong place are seen.
  static constexpr std::uint64_t kPiece = 24_MiB;

  explicit EndlessRoom(std::uint64_t bytes) : bytes_(bytes) {
    void* start = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw_errno("mmap");
    start_ = static_cast<std::byte*>(start);
    const Fd pages = sealed_memfd("pages", kPiece);
    for (std::uint64_t at = 0; at < bytes; at += kPiece) {
      ::mmap(start_ + at, kPiece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pages.get(), 0);
    }
  }
  EndlessRoom(const EndlessRoom&) = delete;
  ~EndlessRoom() { ::munmap(start_, bytes_); }

  std::byte* data() const { return start_; }

 private:
  const std::uint64_t bytes_;
  std::byte* start_ = nullptr;
};

TEST(ReadAt, ReadsMoreThanTwoGibibytesInPieces) {
  constexpr std::uint64_t kSize = 87 * EndlessRoom::kPiece;
  static_assert(kSize > 2_GiB);
  const Fd file = sealed_memfd("sparse", kSize);
  const Mapping mapping(file, kSize, Mapping::Access::kReadWrite);
  std::memcpy(mapping.data() + kSize - 3, "end", 3);
  const EndlessRoom room(kSize);
  EXPECT_EQ(std::get<std::uint64_t>(read_at(file, room.data(), kSize, 0)), kSize);
  EXPECT_EQ(std::memcmp(room.data() + kSize - 3, "end", 3), 0);
}
#endif

TEST(BytesWithin, CutsARangeToTheFile) {
  EXPECT_EQ(bytes_within(10, 0, kToTheEnd), 10u);
  EXPECT_EQ(bytes_within(10, 4, kToTheEnd), 6u);
  EXPECT_EQ(bytes_within(10, 4, 3), 3u);
  EXPECT_EQ(bytes_within(10, 9, 5), 1u);
  EXPECT_EQ(bytes_within(10, 10, 5), 0u);
  EXPECT_EQ(bytes_within(10, UINT64_MAX, 5), 0u);
  EXPECT_EQ(bytes_within(0, 0, kToTheEnd), 0u);
}

TEST(Errors, ThatMayGoAwayByThemselvesAreTransient) {
  for (const int error : {EINTR, EAGAIN, ETIMEDOUT, ESTALE}) EXPECT_TRUE(is_transient(error));
  for (const int error : {EIO, ENOENT, EACCES, EISDIR, EMFILE, ENOMEM, 0}) {
    EXPECT_FALSE(is_transient(error));
  }
}

TEST(Backoff, DoublesFromTenMillisecondsAndGivesUpAfterSevenTries) {
  Backoff backoff;
  std::vector<int> pauses;
  while (const auto pause = backoff.next()) pauses.push_back(static_cast<int>(pause->count()));
  EXPECT_EQ(pauses, (std::vector{10, 20, 40, 80, 160, 320, 640}));
  EXPECT_EQ(backoff.tries(), 7);
  EXPECT_FALSE(backoff.next());
}

}  // namespace
}  // namespace prisma
