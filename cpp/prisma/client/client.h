// The client: takes samples from the engine's buffer, and reads directly whatever it cannot have.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prisma/base/siphash.h"
#include "prisma/buffer/index.h"
#include "prisma/client/attachment.h"
#include "prisma/client/taken.h"
#include "prisma/plan/sample.h"

namespace prisma {

/// Thread-safe. A take waits for the read of its own sample and for nothing else; once the engine
/// is gone, all is read directly.
class Client {
 public:
  /// Throws std::system_error when no engine answers. `check` is called every 100 ms while this or
  /// a take waits; what it throws ends the wait.
  explicit Client(Fd socket, std::uint64_t session = 0, std::function<void()> check = {});

  /// What a user should hear of, and only once.
  enum class Notice { kCopied, kGathered };

  /// Whether this has come to pass here and nobody asked before.
  bool first_to(Notice notice);

  /// Whether this is the process that attached. In a forked child everything is read directly.
  bool is_ours() const { return attachment_->is_ours(); }

  const ClientSlot& counters() const { return attachment_->slot(); }
  const Header& engine() const { return attachment_->control().header; }
  std::uint64_t session() const { return attachment_->session(); }
  std::int64_t engine_pid() const { return attachment_->engine_pid(); }
  bool is_lost() const { return lost_.load(std::memory_order_relaxed); }
  bool engine_lives() const { return !lost_.load() && attachment_->engine_lives(); }

  /// Says what comes next on a lane, in as many messages as it takes.
  void announce(std::uint32_t plan, std::uint32_t lane, wire::NamedBy named_by,
                std::uint64_t first_position, const std::vector<Sample>& samples);

  /// Waits until the engine knows all that was announced here, or is gone, or stopped.
  void settle();

  /// Drops what is left of a plan, or of one lane of it.
  void cancel(std::uint32_t plan, std::uint32_t lane = UINT32_MAX);
  void tune(std::uint64_t depth, std::uint64_t buffer_bytes);

  /// The sample at this position of a lane that this client announced. Waits for its announcement
  /// to arrive, too.
  Taken take(std::uint32_t plan, std::uint32_t lane, std::uint64_t position, const Sample& sample);

  /// The earliest untaken occurrence of this range in the session's plans; one that no plan holds
  /// is read directly.
  Taken take(const Sample& sample);

  /// The same, but nothing, and nothing read, when no plan of the session holds it.
  std::optional<Taken> take_if_planned(const Sample& sample);

  /// One chunk of a large sample, best in their order: bytes, or why there are none.
  Taken take_chunk(const Large& large, std::uint64_t chunk);

  /// All of a large sample, in memory of the caller's.
  Taken gather(const Large& large);

 private:
  enum class Next { kTryAgain, kReadDirectly };

  Hash128 name_of(const Sample& sample) const;
  Taken take_named(const Hash128& name, const Sample& sample);
  std::optional<Taken> take_from_buffer(const Hash128& name, const Sample& sample);
  std::optional<Taken> read_aside(const Found& found, const Sample& sample);
  Next await(const Found& found);
  Next await_announcement(std::uint32_t seen);
  Taken use(const Found& found, const Sample& sample);
  Taken stream(const Found& found, const Sample& sample);
  Taken lease(const Found& found);
  Taken direct(const Sample& sample);

  const std::function<void()> while_waiting_;
  const std::shared_ptr<Attachment> attachment_;
  const std::shared_ptr<SpareMemory> spare_ = std::make_shared<SpareMemory>();
  std::atomic<bool> lost_ = false;
  std::atomic<bool> copied_ = false, told_of_copy_ = false, told_of_gathering_ = false;
  std::atomic<std::uint32_t> announcements_ = 0;  // sent
};

}  // namespace prisma
