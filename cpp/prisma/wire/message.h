// The few messages that engine and client exchange: one packet each, both sides on one machine.
//
//   client ─▶ engine   Hello      I am here, in this session (0: a new one)
//   engine ─▶ client   Welcome    who you are; with it, three descriptors: data, control, bell
//   client ─▶ engine   Announce   these samples come next on this lane
//   client ─▶ engine   Demand     somebody waits for this entry
//   client ─▶ engine   Resume     a lane that had stepped aside wants reading ahead again
//   client ─▶ engine   Cancel     this plan (or one lane of it) is over: drop what is left
//   client ─▶ engine   Pin        a fork is coming: these entries stay; with it, a descriptor whose
//                                 other end closes when the last child has let go of them
//   client ─▶ engine   Tune       the knobs
//   client ─▶ engine   Ping       count me up when all before this is done
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "prisma/plan/sample.h"

namespace prisma::wire {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kMostBytes = 64 << 10;    // of one packet
inline constexpr std::size_t kLongestPath = 16 << 10;  // longer ones no system opens

enum class NamedBy : std::uint8_t { kPosition, kPath };

struct Hello {
  std::uint32_t version = kVersion;
  std::int64_t pid = 0;
  std::uint64_t session = 0;
};

struct Welcome {
  std::uint32_t version = kVersion;
  std::uint16_t client = 0;
  std::uint64_t session = 0;
  std::int64_t engine_pid = 0;
};

struct Announce {
  std::uint32_t plan = 0;
  std::uint32_t lane = 0;
  NamedBy named_by = NamedBy::kPosition;
  std::uint64_t first_position = 0;
  std::vector<Sample> samples;
};

struct Demand {
  std::uint32_t entry = 0;
  std::uint32_t generation = 0;
};

struct Resume {
  std::uint32_t entry = 0;  // any entry of the lane
};

struct Cancel {
  std::uint32_t plan = 0;
  std::uint32_t lane = UINT32_MAX;  // all of them
};

struct Pin {
  std::vector<std::uint32_t> entries;
};

struct Tune {
  std::uint64_t depth = 0;         // 0: as it is
  std::uint64_t buffer_bytes = 0;  // 0: as it is
};

struct Ping {
  std::uint64_t count = 0;
};

using Message = std::variant<Hello, Welcome, Announce, Demand, Resume, Cancel, Pin, Tune, Ping>;

std::vector<std::byte> encode(const Message& message);

/// Nothing when the bytes are no message of this version.
std::optional<Message> decode(std::span<const std::byte> bytes);

/// What one sample adds to an Announce, at most.
constexpr std::size_t encoded_bytes(const Sample& sample) { return sample.path.size() + 20; }

}  // namespace prisma::wire
