// The mount itself.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include <memory>

#include "slowfs/filesystem.h"
#include "slowfs/options.h"

namespace prisma::slowfs {

/// Mounted while it lives. Should this process be killed, fusermount3 sees its
/// end and unmounts.
class Session {
 public:
  Session(const Options &options,
          Filesystem &filesystem);  // throws std::runtime_error
  ~Session();                       // files that are still open give errors from then on
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  fuse_session *get() const { return session_.get(); }

 private:
  struct Destroy {
    void operator()(fuse_session *session) const { fuse_session_destroy(session); }
  };

  std::unique_ptr<fuse_session, Destroy> session_;
};

}  // namespace prisma::slowfs
