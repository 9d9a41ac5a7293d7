// How samples are named in the index: by a keyed hash of where they occur or of what they are.
#pragma once

#include <cstdint>
#include <string_view>

#include "prisma/base/siphash.h"

namespace prisma {

/// The earliest untaken entry of this file range in the session, whichever lane.
Hash128 name_by_path(const HashKey& key, std::uint64_t session, std::string_view path,
                     std::uint64_t offset, std::uint64_t length);

/// Exactly this position of this lane.
Hash128 name_by_position(const HashKey& key, std::uint64_t client, std::uint32_t plan,
                         std::uint32_t lane, std::uint64_t position);

/// One chunk of a stream that was taken.
Hash128 name_of_chunk(const HashKey& key, std::uint32_t entry, std::uint32_t generation,
                      std::uint64_t chunk);

}  // namespace prisma
