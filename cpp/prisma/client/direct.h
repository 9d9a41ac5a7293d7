// A read without the engine, by the rules of base/file.h: exactly what a plain open would give.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "prisma/client/taken.h"
#include "prisma/plan/sample.h"

namespace prisma {

/// Where a direct read puts its bytes; none: into fresh memory.
using Spare = std::shared_ptr<SpareMemory>;

/// Never large.
Taken read_directly(const Sample& sample, const Spare& spare = {});

/// The same for what has at most so many bytes, provided that `claim` agrees once the file is open.
/// Nothing, and nothing read, otherwise.
std::optional<Taken> read_small(const Sample& sample, const Spare& spare, std::uint64_t most_bytes,
                                const std::function<bool()>& claim);

}  // namespace prisma
