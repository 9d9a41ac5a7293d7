// Engine and clients in one process, over the real files, sockets and shared memory.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "prisma/base/failure.h"
#include "prisma/base/units.h"
#include "prisma/client/client.h"
#include "prisma/engine/engine.h"

namespace prisma {
namespace {

namespace fs = std::filesystem;

/// An engine that serves in a thread of its own, until its last client is gone.
class RunningEngine {
 public:
  explicit RunningEngine(Limits limits) : engine_(std::make_unique<Engine>(Fd(), limits)) {
    auto [here, there] = wire::connected_pair();
    engine_->server().welcome(std::move(there));
    thread_ = std::jthread([this] {
      engine_->run();
      engine_.reset();
    });
    client_ = std::make_unique<Client>(std::move(here));
  }

  Client& client() { return *client_; }

 private:
  std::unique_ptr<Engine> engine_;
  std::jthread thread_;             // ends when the client below is gone
  std::unique_ptr<Client> client_;  // last: destroyed first
};

class Together : public ::testing::Test {
 protected:
  Together()
      : folder_(fs::temp_directory_path() /
                (std::string("prisma-").append(std::to_string(::getpid())))) {
    fs::create_directories(folder_);
  }
  ~Together() override { fs::remove_all(folder_); }

  std::string content(std::size_t seed, std::size_t bytes) {
    std::mt19937_64 random(seed);
    std::string text(bytes, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    return text;
  }

  Sample file(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return {path.string()};
  }

  std::vector<Sample> files(std::size_t count, std::size_t bytes) {
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < count; ++i) {
      samples.push_back(file(std::string("f").append(std::to_string(i)), content(i, bytes)));
    }
    return samples;
  }

  static std::string text_of(Client& client, const Taken& taken) {
    const auto* large = std::get_if<Large>(&taken);
    return large != nullptr ? text_of(client.gather(*large)) : text_of(taken);
  }

  static std::string text_of(const Taken& taken) {
    const auto* bytes = std::get_if<Bytes>(&taken);
    if (bytes == nullptr)
      return std::string("error ").append(std::to_string(std::get<Failure>(taken).error_number));
    const auto view = bytes->view();
    return {reinterpret_cast<const char*>(view.data()), view.size()};
  }

  fs::path folder_;
};

TEST_F(Together, APlanIsDeliveredInItsOrderByteForByte) {
  RunningEngine engine({64_MiB, 8_MiB, 8});
  const auto samples = files(200, 30'000);
  engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ASSERT_EQ(text_of(engine.client().take(1, 0, i, samples[i])), content(i, 30'000)) << i;
  }
}

TEST_F(Together, SamplesComeFromTheSharedBuffer) {
  RunningEngine engine({64_MiB, 64_MiB, 4});
  const auto samples = files(20, 10'000);
  engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Taken taken = engine.client().take(1, 0, i, samples[i]);
    ASSERT_TRUE(std::get<Bytes>(taken).is_shared()) << i;
  }
}

TEST_F(Together, WhatCannotBeReadFailsAtItsPlaceAndNothingElseDoes) {
  RunningEngine engine({64_MiB, 8_MiB, 4});
  const std::vector<Sample> samples{file("a", "first"),
                                    {folder_ / "absent"},
                                    file("empty", ""),
                                    {folder_.string()},
                                    file("z", "last")};
  engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  std::vector<std::string> got;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    got.push_back(text_of(engine.client().take(1, 0, i, samples[i])));
  }
  EXPECT_EQ(got, (std::vector<std::string>{
                     "first", std::string("error ").append(std::to_string(ENOENT)), "",
                     std::string("error ").append(std::to_string(EISDIR)), "last"}));
}

TEST_F(Together, AFileLargerThanTheBufferGoesThroughIt) {
  RunningEngine engine({1_MiB, 1_MiB, 4});
  const std::string large = content(7, 5'000'003);
  const std::vector<Sample> samples{file("s", "small"), file("l", large), file("t", "after")};
  engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  EXPECT_EQ(text_of(engine.client().take(1, 0, 0, samples[0])), "small");
  EXPECT_TRUE(text_of(engine.client(), engine.client().take(1, 0, 1, samples[1])) == large);
  EXPECT_EQ(text_of(engine.client().take(1, 0, 2, samples[2])), "after");
}

TEST_F(Together, ARangeOfAFileIsThatRange) {
  RunningEngine engine({8_MiB, 8_MiB, 2});
  Sample sample = file("r", "0123456789");
  const std::vector<Sample> samples{
      {sample.path, 2, 3}, {sample.path, 8, 10}, {sample.path, 99, 1}};
  engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  EXPECT_EQ(text_of(engine.client().take(1, 0, 0, samples[0])), "234");
  EXPECT_EQ(text_of(engine.client().take(1, 0, 1, samples[1])), "89");
  EXPECT_EQ(text_of(engine.client().take(1, 0, 2, samples[2])), "");
}

TEST_F(Together, ASampleThatNoPlanHoldsIsReadDirectly) {
  RunningEngine engine({8_MiB, 8_MiB, 2});
  const Taken taken = engine.client().take(file("u", "unplanned"));
  EXPECT_EQ(text_of(taken), "unplanned");
  EXPECT_FALSE(std::get<Bytes>(taken).is_shared());
}

TEST_F(Together, AConsumerThatKeepsAllItGetsIsServedOnInPrivateCopies) {
  RunningEngine engine({1_MiB, 1_MiB, 4});
  const auto samples = files(100, 50'000);
  engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  std::vector<Taken> kept;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    kept.push_back(engine.client().take(1, 0, i, samples[i]));
  }
  for (std::size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(text_of(kept[i]), content(i, 50'000));
  EXPECT_FALSE(std::get<Bytes>(kept.back()).is_shared());
}

TEST_F(Together, ABufferSmallerThanAllLanesStillFeedsThemInAnyOrder) {
  RunningEngine engine({256_KiB, 256_KiB, 4});
  const auto samples = files(64, 40'000);
  for (std::uint32_t lane = 0; lane < 4; ++lane) {
    engine.client().announce(1, lane, wire::NamedBy::kPosition, 0,
                             {samples.begin() + lane * 16, samples.begin() + (lane + 1) * 16});
  }
  // Lane after lane, against the merged order in which they are read ahead.
  for (std::size_t i = samples.size(); i-- > 0;) {
    const std::size_t lane = i / 16;
    const std::size_t position = 15 - i % 16;
    const std::size_t which = lane * 16 + position;
    ASSERT_EQ(text_of(engine.client().take(1, static_cast<std::uint32_t>(lane), position,
                                           samples[which])),
              content(which, 40'000));
  }
}

TEST_F(Together, TheSamePathManyTimesIsDeliveredAsOften) {
  RunningEngine engine({8_MiB, 8_MiB, 4});
  const Sample sample = file("again", "and again");
  engine.client().announce(1, 0, wire::NamedBy::kPath, 0, std::vector<Sample>(300, sample));
  for (int i = 0; i < 300; ++i) ASSERT_EQ(text_of(engine.client().take(sample)), "and again");
}

TEST_F(Together, ManyThreadsOfOneClientAreFedSideBySide) {
  RunningEngine engine({2_MiB, 2_MiB, 4});
  const auto samples = files(160, 20'000);
  std::vector<std::jthread> consumers;
  std::atomic<int> wrong = 0;
  for (std::uint32_t lane = 0; lane < 8; ++lane) {
    const std::vector<Sample> part(samples.begin() + lane * 20, samples.begin() + (lane + 1) * 20);
    engine.client().announce(2, lane, wire::NamedBy::kPosition, 0, part);
    consumers.emplace_back([&, lane, part] {
      for (std::size_t i = 0; i < part.size(); ++i) {
        const Taken taken = engine.client().take(2, lane, i, part[i]);
        if (text_of(taken) != content(lane * 20 + i, 20'000)) ++wrong;
      }
    });
  }
  consumers.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Together, ACancelledPlanLeavesRoomForTheNext) {
  RunningEngine engine({512_KiB, 512_KiB, 4});
  const auto samples = files(30, 60'000);
  for (std::uint32_t plan = 0; plan < 40; ++plan) {
    engine.client().announce(plan, 0, wire::NamedBy::kPosition, 0, samples);
    ASSERT_EQ(text_of(engine.client().take(plan, 0, 0, samples[0])), content(0, 60'000));
    engine.client().cancel(plan);
  }
}

/// What a child process does; the test goes on when it has begun, and ends it when it is destroyed.
class Child {
 public:
  /// `task` gets a function that waits until the parent lets it go on.
  explicit Child(const std::function<int(const std::function<void()>&)>& task) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw_errno("pipe");
    const Fd theirs(ends[0]);
    go_on_ = Fd(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    go_on_.reset();
    ::_exit(task([&] {
      char byte = 0;
      while (::read(theirs.get(), &byte, 1) < 0 && errno == EINTR) {
      }
    }));
  }
  int finish() {
    go_on_.reset();
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WEXITSTATUS(status);
  }

 private:
  Fd go_on_;
  pid_t pid_ = 0;
};

TEST_F(Together, AForkedChildStillSeesWhatItsParentHeldAndReleased) {
  RunningEngine engine({512_KiB, 512_KiB, 4});
  const auto samples = files(60, 50'000);
  Client& client = engine.client();
  client.announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  std::optional<Taken> first = client.take(1, 0, 0, samples[0]);
  ASSERT_TRUE(std::get<Bytes>(*first).is_shared());
  Child child([&](const auto& wait) {
    wait();  // meanwhile the parent has let go of it and gone through the buffer many times
    return text_of(*first) == content(0, 50'000) ? 0 : 1;
  });
  first.reset();
  for (std::size_t i = 1; i < samples.size(); ++i) {
    ASSERT_EQ(text_of(client.take(1, 0, i, samples[i])), content(i, 50'000)) << i;
  }
  EXPECT_EQ(child.finish(), 0);
}

TEST_F(Together, RoomThatAChildHeldComesBackWhenItHasEnded) {
  RunningEngine engine({512_KiB, 512_KiB, 4});
  const auto samples = files(8, 60'000);
  Client& client = engine.client();
  for (std::uint32_t plan = 0; plan < 10; ++plan) {
    client.announce(plan, 0, wire::NamedBy::kPosition, 0, samples);
    std::vector<Taken> held;
    for (std::size_t i = 0; i < 3; ++i) held.push_back(client.take(plan, 0, i, samples[i]));
    Child child([](const auto& wait) { return wait(), 0; });
    held.clear();
    ASSERT_EQ(child.finish(), 0);
    client.cancel(plan);
    client.settle();
  }
  // All of it is free again: as much as the buffer has finds room at once.
  const auto& used = client.engine().counters.used_bytes;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (used.load() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(used.load(), 0u);
}

TEST_F(Together, AForkedChildReadsDirectlyAndReleasesNothingOfItsParents) {
  RunningEngine engine({8_MiB, 8_MiB, 4});
  const auto samples = files(4, 50'000);
  Client& client = engine.client();
  client.announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  std::optional<Taken> first = client.take(1, 0, 0, samples[0]);
  Child child([&](const auto&) {
    const bool shared = std::get<Bytes>(*first).is_shared();
    first.reset();
    const Taken again = client.take(1, 0, 1, samples[1]);
    const bool direct = !std::get<Bytes>(again).is_shared();
    return shared && direct && !client.is_ours() && text_of(again) == content(1, 50'000) ? 0 : 1;
  });
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(text_of(*first), content(0, 50'000));
  EXPECT_EQ(client.engine().leased_bytes.load(), 50'000u);
  EXPECT_TRUE(std::get<Bytes>(client.take(1, 0, 1, samples[1])).is_shared());
}

TEST_F(Together, AHeldSampleIsNotGivenAgainWhenItsFileIsAnother) {
  RunningEngine engine({8_MiB, 8_MiB, 2});
  const Sample sample = file("rewritten", "old");
  engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, {sample});
  const Taken held = engine.client().take(1, 0, 0, sample);
  file("rewritten", "another");
  engine.client().announce(2, 0, wire::NamedBy::kPosition, 0, {sample});
  EXPECT_EQ(text_of(engine.client().take(2, 0, 0, sample)), "another");
  EXPECT_EQ(text_of(held), "old");
}

TEST_F(Together, AConsumerStepsAsideWhereReadsDoNotWaitAndComesBackWhenTheyDo) {
  RunningEngine engine({512_KiB, 512_KiB, 2});  // far less than all of it
  Client& client = engine.client();
  const auto samples = files(600, 5'000);
  const auto take = [&](std::size_t i) {
    const Taken taken = client.take(1, 0, i, samples[i]);
    EXPECT_EQ(text_of(taken), content(i, 5'000));
    return std::get<Bytes>(taken).is_shared();
  };
  auto& lanes =
      const_cast<ControlLayout&>(reinterpret_cast<const ControlLayout&>(client.engine())).lanes;
  const auto lane_aside = [&]() -> LaneSlot* {
    const auto found = std::find_if(lanes.begin(), lanes.end(),
                                    [](const LaneSlot& lane) { return lane.aside.load() != 0; });
    return found == lanes.end() ? nullptr : &*found;
  };

  std::size_t at = 0;
  client.announce(1, 0, wire::NamedBy::kPosition, 0, samples);
  while (at < samples.size() && take(at)) ++at;
  ASSERT_LT(at, samples.size()) << "the page cache has it, and it was read ahead all the same";
  LaneSlot* lane = lane_aside();
  ASSERT_NE(lane, nullptr);
  EXPECT_GT(client.counters().asides.load(), 0u);

  // What slow storage would have left behind.
  lane->slow_reads = 3;
  lane->spent_ns = lane->expected_ns + 50'000'000;
  ++at;
  EXPECT_TRUE(take(at)) << "the engine reads again, and what it has is taken";
}

TEST_F(Together, FiftyRandomPlansEqualAPlainLoop) {
  const std::vector<std::size_t> sizes{0, 1, 4095, 4096, 4097, 30'000, 200'000};
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    samples.push_back(file(std::string("size").append(std::to_string(i)), content(i, sizes[i])));
  }
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const std::uint64_t budget = 256_KiB << random() % 6;
    RunningEngine engine({budget, budget, 1 + random() % 16});
    std::vector<std::size_t> plan(60);
    std::vector<Sample> announced;
    for (std::size_t& at : plan) announced.push_back(samples[at = random() % samples.size()]);
    engine.client().announce(1, 0, wire::NamedBy::kPosition, 0, announced);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      ASSERT_TRUE(text_of(engine.client(), engine.client().take(1, 0, i, announced[i])) ==
                  content(plan[i], sizes[plan[i]]))
          << "seed " << seed << " position " << i;
    }
  }
}

TEST_F(Together, OnceTheEngineIsGoneAllIsReadDirectly) {
  auto [here, there] = wire::connected_pair();
  const auto samples = files(3, 100);
  std::unique_ptr<Client> client;
  {
    Engine engine(Fd(), {8_MiB, 8_MiB, 2});
    engine.server().welcome(std::move(there));
    std::jthread attaching([&, socket = std::move(here)]() mutable {
      client = std::make_unique<Client>(std::move(socket));
      client->announce(1, 0, wire::NamedBy::kPosition, 0, samples);
    });
    engine.server().serve_once();
    attaching.join();
  }
  EXPECT_FALSE(client->engine_lives());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(text_of(client->take(1, 0, i, samples[i])), content(i, 100));
  }
}

}  // namespace
}  // namespace prisma
