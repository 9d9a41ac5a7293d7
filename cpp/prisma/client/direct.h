// A read without the engine, by the rules of base/file.h: exactly what a plain open would give.
#pragma once

#include "prisma/client/taken.h"
#include "prisma/plan/sample.h"

namespace prisma {

/// Never large.
Taken read_directly(const Sample& sample);

}  // namespace prisma
