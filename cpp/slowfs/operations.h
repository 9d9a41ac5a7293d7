// Filesystem's methods, as the table of functions that libfuse calls.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

namespace prisma::slowfs {

/// The user data of the session must be a Filesystem.
const fuse_lowlevel_ops& operations();

}  // namespace prisma::slowfs
