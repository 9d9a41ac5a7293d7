// What every source owes the engine.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prisma/base/memory.h"
#include "prisma/base/testing/temporary_directory.h"
#include "prisma/base/units.h"
#include "prisma/source/source.h"
#include "prisma/source/testing/given_work.h"

namespace prisma {
namespace {

using testing::Ended;
using testing::GivenWork;
using testing::TemporaryDirectory;

/// While it lives, opening the file without waiting fails with EAGAIN: the one transient error that
/// any file system gives on demand.
class WriteLease {
 public:
  explicit WriteLease(const std::string& path) {
    std::signal(SIGIO, SIG_IGN);  // what a lease's owner gets when somebody wants the file
    file_ = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    held_ = ::fcntl(file_.get(), F_SETLEASE, F_WRLCK) == 0;
  }
  bool held() const { return held_; }

 private:
  Fd file_;
  bool held_ = false;
};

/// Threads made while it lives may read what anybody may, and no more.
class AsNobody {
 public:
  AsNobody() : before_(::setfsuid(65534)) {}
  AsNobody(const AsNobody&) = delete;
  ~AsNobody() { ::setfsuid(static_cast<uid_t>(before_)); }

 private:
  int before_;
};

/// Has the page cache forget a file; false if it does not.
bool drop_from_memory(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const Mapping mapping(file, file_bytes(file), Mapping::Access::kRead);
  std::vector<unsigned char> pages(whole_pages(mapping.size()) / kPage);
  for (int tries = 0; tries < 100; ++tries) {  // some may be on their way still
    ::fsync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    ::mincore(mapping.data(), mapping.size(), pages.data());
    if (std::ranges::none_of(pages, [](unsigned char page) { return page & 1; })) return true;
  }
  return false;
}

/// Has temporary directories made in a folder, while it lives.
class InFolder {
 public:
  explicit InFolder(const char* folder) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    if (*folder != '\0') ::setenv("TMPDIR", folder, 1);
  }
  InFolder(const InFolder&) = delete;
  ~InFolder() {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }

 private:
  std::optional<std::string> before_;
};

/// A kind of source, and where the files are: a ring treats those on a disk otherwise than those
/// that have no device of their own.
struct Contract {
  SourceKind kind;
  const char* folder;
};

class SourceContract : public ::testing::TestWithParam<Contract> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam().kind); !why.empty()) GTEST_SKIP() << why;
    start();
  }

  void start(std::size_t depth = 4) {
    source_.reset();
    work_.set_depth(depth);
    source_ = make_source(GetParam().kind, work_);
    source_->set_depth(depth);
  }

  Ended read(Sample sample) { return work_.ended(work_.give(std::move(sample))); }

  /// A read as the engine has it that kept a file open.
  static Read of_open_file(const std::string& path, Sample range = {}) {
    range.path = path;
    auto file = std::get<OpenFile>(open_file(path.c_str()));
    return {0, range, std::make_shared<OpenFile>(std::move(file)), nullptr, false};
  }

  const InFolder in_folder_{GetParam().folder};
  const TemporaryDirectory directory_;
  GivenWork work_;
  std::unique_ptr<Source> source_;
};

TEST_P(SourceContract, ReadsAWholeFile) {
  const Ended ended = read({directory_.file("sample", "some bytes")});
  EXPECT_EQ(ended.bytes, "some bytes");
  EXPECT_GE(ended.times.open_ns + ended.times.read_ns, 1);
}

TEST_P(SourceContract, ReadsALargeFile) {
  std::string content(5'000'000, ' ');
  for (std::size_t at = 0; at < content.size(); ++at) content[at] = static_cast<char>(at * 7 >> 3);
  EXPECT_TRUE(read({directory_.file("large", content)}).bytes == content);
}

TEST_P(SourceContract, TellsWhetherItHadToWaitForStorage) {
  const std::string path = directory_.file("sample", std::string(300'000, 'x'));
  // A reader that is preempted just then finds, when it goes on, that it need not wait.
  bool waited = false;
  for (int tries = 0; tries < 50 && !waited; ++tries) {
    if (!drop_from_memory(path)) GTEST_SKIP() << "no storage behind this folder";
    const Ended ended = read({path});
    ASSERT_TRUE(ended.bytes == std::string(300'000, 'x'));
    waited = ended.times.waited;
  }
  EXPECT_TRUE(waited);
  EXPECT_FALSE(read({path}).times.waited);
}

TEST_P(SourceContract, ReadsARange) {
  const std::string file = directory_.file("sample", "0123456789");
  EXPECT_EQ(read({file, 2, 3}).bytes, "234");
  EXPECT_EQ(read({file, 8, 100}).bytes, "89");
  EXPECT_EQ(read({file, 4}).bytes, "456789");
}

TEST_P(SourceContract, HasNoBytesPastTheEndAndInEmptyFiles) {
  const std::string file = directory_.file("sample", "0123456789");
  for (const Sample& sample : {Sample{file, 10}, Sample{file, 1000, 5}, Sample{file, 3, 0},
                               Sample{directory_.file("empty", "")}}) {
    const Ended ended = read(sample);
    ASSERT_TRUE(std::holds_alternative<BytesRead>(ended.outcome)) << ended.error();
    EXPECT_EQ(std::get<BytesRead>(ended.outcome).bytes, 0u);
  }
}

TEST_P(SourceContract, RefusesWhatOnlyADirectReadCanDo) {
  const std::string pipe = directory_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(read({pipe}).refused());
  EXPECT_TRUE(read({"/dev/null"}).refused());
  EXPECT_TRUE(read({"/proc/self/maps"}).refused());  // says that its size is 0, and is not empty
}

TEST_P(SourceContract, FailsAsOpenWould) {
  EXPECT_EQ(read({directory_.path("absent")}).error(), ENOENT);
  EXPECT_EQ(read({directory_.path("")}).error(), EISDIR);
  EXPECT_EQ(read({directory_.file("file", "") + "/below"}).error(), ENOTDIR);
  std::filesystem::create_symlink("loop", directory_.path("loop"));
  EXPECT_EQ(read({directory_.path("loop")}).error(), ELOOP);
  EXPECT_EQ(read({directory_.path(std::string(300, 'x'))}).error(), ENAMETOOLONG);
}

TEST_P(SourceContract, FailsForWhoMayNotRead) {
  const std::string file = directory_.file("secret", "x");
  ASSERT_EQ(::chmod(directory_.path("").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  const AsNobody nobody;
  start();
  EXPECT_EQ(read({file}).error(), EACCES);
}

TEST_P(SourceContract, ReadsNamesOfAnyBytes) {
  EXPECT_EQ(read({directory_.file("\xff\n \x01%s", "odd")}).bytes, "odd");
}

TEST_P(SourceContract, LeavesToTheEngineWhatFindsNoRoomAndGoesOn) {
  work_.set_depth(1);
  work_.on_room([](const Read& read) { return read.sample.offset != 1; });
  const std::string file = directory_.file("sample", "0123456789");
  const auto parked = work_.give({file, 1});
  const auto next = work_.give({file, 2});
  EXPECT_EQ(work_.ended(next).bytes, "23456789");
  const Read taken = work_.taken_over(parked);
  EXPECT_EQ(taken.file->stamp.size, 10u);
  EXPECT_FALSE(work_.has_ended(parked));
}

TEST_P(SourceContract, GoesOnWithAFileThatIsOpenAlready) {
  const std::string path = directory_.file("sample", "0123456789");
  Read read = of_open_file(path, {"", 5});
  ASSERT_EQ(::unlink(path.c_str()), 0);  // so that it cannot be opened anew
  EXPECT_EQ(work_.ended(work_.give(read)).bytes, "56789");

  std::string room(5, '?');
  read.to = reinterpret_cast<std::byte*>(room.data());
  work_.on_room([](const Read&) { return false; });  // so that none may be asked for
  EXPECT_EQ(work_.ended(work_.give(read)).bytes, "56789");
  EXPECT_EQ(room, "56789");
}

TEST_P(SourceContract, ReadsChunksOfAFile) {
  const std::string path = directory_.file("stream", "0123456789");
  Read chunk = of_open_file(path, {"", 3, 4});
  chunk.chunk = true;
  EXPECT_EQ(work_.ended(work_.give(chunk)).bytes, "3456");
}

TEST_P(SourceContract, ReadsAFileOnceMoreThatChangedMeanwhile) {
  const std::string path = directory_.file("sample", "old");
  int asked = 0;
  work_.on_room([&](const Read&) {
    if (++asked == 1) directory_.file("sample", "brand new");
    return true;
  });
  EXPECT_EQ(read({path}).bytes, "brand new");
  EXPECT_EQ(work_.retries(), 0);
}

TEST_P(SourceContract, ReadsAFileOnceMoreThatBecameShorter) {
  const std::string path = directory_.file("sample", "a long content");
  int asked = 0;
  work_.on_room([&](const Read&) {
    if (++asked == 1) directory_.file("sample", "short");
    return true;
  });
  EXPECT_EQ(read({path}).bytes, "short");
}

TEST_P(SourceContract, FailsForAFileThatKeepsChanging) {
  const std::string path = directory_.file("sample", "");
  std::size_t size = 1;
  directory_.file("sample", "x");
  work_.on_room([&](const Read&) {
    directory_.file("sample", std::string(++size, 'x'));
    return true;
  });
  EXPECT_EQ(read({path}).error(), ESTALE);
  EXPECT_EQ(work_.retries(), 0);
}

TEST_P(SourceContract, FailsAtOnceForAChunkOfAFileThatChanged) {
  const std::string path = directory_.file("stream", "0123456789");
  Read chunk = of_open_file(path, {"", 3, 4});
  chunk.chunk = true;
  directory_.file("stream", "another size");
  EXPECT_EQ(work_.ended(work_.give(chunk)).error(), ESTALE);
  EXPECT_EQ(work_.retries(), 0);
}

TEST_P(SourceContract, TriesAgainWhatMayGoAwayByItself) {
  const std::string path = directory_.file("sample", "worth waiting for");
  auto lease = std::make_unique<WriteLease>(path);
  if (!lease->held()) GTEST_SKIP() << "no leases here";
  const auto ticket = work_.give({path});
  work_.await_retries(2);
  lease.reset();
  EXPECT_EQ(work_.ended(ticket).bytes, "worth waiting for");
}

TEST_P(SourceContract, GivesUpInTheEnd) {
  const std::string path = directory_.file("sample", "never");
  const WriteLease lease(path);
  if (!lease.held()) GTEST_SKIP() << "no leases here";
  EXPECT_EQ(read({path}).error(), EAGAIN);
  EXPECT_EQ(work_.retries(), 7);
}

TEST_P(SourceContract, WaitsForNoOtherReadWhileOneIsTriedAgain) {
  const std::string path = directory_.file("sample", "late");
  auto lease = std::make_unique<WriteLease>(path);
  if (!lease->held()) GTEST_SKIP() << "no leases here";
  const auto late = work_.give({path});
  work_.await_retries(1);
  EXPECT_EQ(read({directory_.file("other", "at once")}).bytes, "at once");
  EXPECT_FALSE(work_.has_ended(late));
  lease.reset();
  EXPECT_EQ(work_.ended(late).bytes, "late");
}

TEST_P(SourceContract, HasAsManyReadsInFlightAsTheDepth) {
  const std::string path = directory_.file("sample", "held");
  auto lease = std::make_unique<WriteLease>(path);  // as long as it is held, no read ends well
  if (!lease->held()) GTEST_SKIP() << "no leases here";
  for (int count = 0; count < 200; ++count) work_.give({path});
  work_.await_in_flight(4);

  work_.set_depth(9);
  source_->set_depth(9);
  work_.await_in_flight(9);

  work_.set_depth(2);
  source_->set_depth(2);
  work_.await_in_flight(2);
  lease.reset();
  const Ended last = read({path});
  EXPECT_EQ(last.bytes, "held");
  EXPECT_LE(work_.in_flight(), 2u);
}

TEST_P(SourceContract, ReadsManyFilesSixteenAtOnce) {
  constexpr int kFiles = 1000;
  start(16);
  std::vector<std::uint64_t> tickets;
  for (int number = 0; number < kFiles; ++number) {
    const std::string name = std::to_string(number);
    tickets.push_back(work_.give({directory_.file(name, std::string(number, 'a') + name)}));
  }
  for (int number = 0; number < kFiles; ++number) {
    ASSERT_EQ(work_.ended(tickets[number]).bytes,
              std::string(number, 'a') + std::to_string(number));
  }
  EXPECT_EQ(work_.in_flight(), 0u);
}

TEST_P(SourceContract, IsDoneWithAllThatItWasGivenWhenItEnds) {
  const std::string file = directory_.file("sample", "x");
  const auto first = work_.give({file});
  for (int count = 0; count < 5000; ++count) work_.give({file});
  work_.ended(first);
  source_.reset();
  EXPECT_EQ(work_.in_flight(), 0u);
}

TEST_P(SourceContract, EndsWithoutTryingAgain) {
  const std::string path = directory_.file("sample", "never");
  const WriteLease lease(path);
  if (!lease.held()) GTEST_SKIP() << "no leases here";
  const auto ticket = work_.give({path});
  work_.await_retries(1);
  source_.reset();
  EXPECT_EQ(work_.ended(ticket).error(), EAGAIN);
  EXPECT_LT(work_.retries(), 7);
}

TEST_P(SourceContract, LeavesNoDescriptorOpen) {
  const auto open_files = [] {
    using Iterator = std::filesystem::directory_iterator;
    return std::distance(Iterator("/proc/self/fd"), Iterator());
  };
  source_.reset();
  const auto before = open_files();
  start();
  for (int number = 0; number < 100; ++number) {
    read({directory_.file(std::to_string(number), "x")});
  }
  source_.reset();
  EXPECT_EQ(open_files(), before);
}

std::vector<Contract> contracts(const char* folder) {
  std::vector<Contract> all;
  for (const SourceKind kind : kSourceKinds) all.push_back({kind, folder});
  return all;
}

std::string kind_of(const ::testing::TestParamInfo<Contract>& info) {
  return std::string(name_of(info.param.kind));
}

INSTANTIATE_TEST_SUITE_P(OnDisk, SourceContract, ::testing::ValuesIn(contracts("")), kind_of);
INSTANTIATE_TEST_SUITE_P(InMemory, SourceContract, ::testing::ValuesIn(contracts("/dev/shm")),
                         kind_of);

}  // namespace
}  // namespace prisma
