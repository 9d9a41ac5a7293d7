// One read from open to end, by a thread that waits for it.
#pragma once

#include <stop_token>

#include "prisma/source/work.h"

namespace prisma {

/// Does a read as the rules in base/file.h say, and ends it unless the engine takes it over. Once
/// stopped, a transient error is tried no more.
void perform(Work& work, Read read, std::stop_token stop);

}  // namespace prisma
