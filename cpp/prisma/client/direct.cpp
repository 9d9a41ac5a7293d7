#include "prisma/client/direct.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "prisma/base/file.h"
#include "prisma/base/units.h"

namespace prisma {
namespace {

/// Changes faster than it can be read.
struct Unsteady {};

using Result = std::variant<Bytes, ErrorNumber, Unsteady>;

/// Pipes and files whose size is not told are read to their end.
Result read_to_the_end(const Fd& fd, const Sample& sample) {
  std::vector<std::byte> all;
  while (all.size() < sample.length) {
    const std::uint64_t step = std::min<std::uint64_t>(64_KiB, sample.length - all.size());
    const std::size_t before = all.size();
    all.resize(before + step);
    const auto got = read_at(fd, all.data() + before, step, sample.offset + before);
    if (const auto* error = std::get_if<ErrorNumber>(&got)) return *error;
    all.resize(before + std::get<std::uint64_t>(got));
    if (std::get<std::uint64_t>(got) < step) break;
  }
  OwnMemory own({}, all.size());
  std::copy(all.begin(), all.end(), own.data());
  return Bytes(std::move(own), all.size());
}

Result read_opened(const OpenFile& file, const Sample& sample, const Spare& spare) {
  FileStamp stamp = file.stamp;
  if (stamp.size == 0) return read_to_the_end(file.fd, sample);
  for (int tries = 0; tries < 2; ++tries) {
    const std::uint64_t bytes = bytes_within(stamp.size, sample.offset, sample.length);
    OwnMemory own(spare, bytes);
    const auto got = read_at(file.fd, own.data(), bytes, sample.offset);
    if (const auto* error = std::get_if<ErrorNumber>(&got)) return *error;
    const auto after = stamp_of(file.fd);
    if (const auto* error = std::get_if<ErrorNumber>(&after)) return *error;
    if (std::get<FileStamp>(after) == stamp && std::get<std::uint64_t>(got) == bytes) {
      return Bytes(std::move(own), bytes);
    }
    stamp = std::get<FileStamp>(after);
  }
  return Unsteady{};
}

}  // namespace

Taken read_directly(const Sample& sample, const Spare& spare) {
  return *read_small(sample, spare, UINT64_MAX, [] { return true; });
}

std::optional<Taken> read_small(const Sample& sample, const Spare& spare, std::uint64_t most_bytes,
                                const std::function<bool()>& claim) {
  Backoff backoff;
  while (true) {
    auto opened = open_file(sample.path.c_str());
    const auto* file = std::get_if<OpenFile>(&opened);
    if (file && bytes_within(file->stamp.size, sample.offset, sample.length) > most_bytes)
      return {};
    if (backoff.tries() == 0 && !claim()) return {};
    auto result = file ? read_opened(*file, sample, spare) : Result(std::get<ErrorNumber>(opened));
    if (auto* bytes = std::get_if<Bytes>(&result)) return std::move(*bytes);
    if (std::holds_alternative<Unsteady>(result)) return Failure{ESTALE, sample.path};
    const int number = std::get<ErrorNumber>(result).value;
    const auto wait = is_transient(number) ? backoff.next() : std::nullopt;
    if (!wait) return Failure{number, sample.path};
    std::this_thread::sleep_for(*wait);
  }
}

}  // namespace prisma
