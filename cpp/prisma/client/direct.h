// A read without the engine, by the rules of base/file.h: exactly what a plain open would give.
#pragma once

#include <variant>

#include "prisma/base/failure.h"
#include "prisma/client/bytes.h"
#include "prisma/plan/sample.h"

namespace prisma {

std::variant<Bytes, Failure> read_directly(const Sample& sample);

}  // namespace prisma
