// What a take gives.
#pragma once

#include <variant>

#include "prisma/base/failure.h"
#include "prisma/client/bytes.h"
#include "prisma/client/large.h"

namespace prisma {

using Taken = std::variant<Bytes, Failure, Large>;

}  // namespace prisma
