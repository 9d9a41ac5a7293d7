#include "prisma/buffer/sample_name.h"

#include <array>
#include <cstring>
#include <string>

namespace prisma {
namespace {

enum class Sort : std::uint64_t { kPath = 1, kPosition = 2, kChunk = 3 };

using Words = std::array<std::uint64_t, 4>;

}  // namespace

Hash128 name_by_path(const HashKey& key, std::uint64_t session, std::string_view path,
                     std::uint64_t offset, std::uint64_t length) {
  const Words words{static_cast<std::uint64_t>(Sort::kPath), session, offset, length};
  std::array<std::byte, 512> place;
  if (sizeof(words) + path.size() <= place.size()) {
    std::memcpy(place.data(), words.data(), sizeof(words));
    std::memcpy(place.data() + sizeof(words), path.data(), path.size());
    return siphash128(key, {place.data(), sizeof(words) + path.size()});
  }
  std::string longer(reinterpret_cast<const char*>(words.data()), sizeof(words));
  longer.append(path);
  return siphash128(key, std::as_bytes(std::span(longer)));
}

Hash128 name_by_position(const HashKey& key, std::uint64_t client, std::uint32_t plan,
                         std::uint32_t lane, std::uint64_t position) {
  const Words words{static_cast<std::uint64_t>(Sort::kPosition), client,
                    std::uint64_t{plan} << 32 | lane, position};
  return siphash128(key, std::as_bytes(std::span(words)));
}

Hash128 name_of_chunk(const HashKey& key, std::uint32_t entry, std::uint32_t generation,
                      std::uint64_t chunk) {
  const Words words{static_cast<std::uint64_t>(Sort::kChunk), entry, generation, chunk};
  return siphash128(key, std::as_bytes(std::span(words)));
}

}  // namespace prisma
