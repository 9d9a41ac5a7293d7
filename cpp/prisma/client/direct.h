// A read without the engine, by the rules of base/file.h: exactly what a plain open would give.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "prisma/client/taken.h"
#include "prisma/plan/sample.h"

namespace prisma {

/// Never large.
Taken read_directly(const Sample& sample);

/// The same for what has at most so many bytes, provided that `claim` agrees once the file is open.
/// Nothing, and nothing read, otherwise.
std::optional<Taken> read_small(const Sample& sample, std::uint64_t most_bytes,
                                const std::function<bool()>& claim);

}  // namespace prisma
