// One request of the kernel, counted from its arrival until it is answered.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include "slowfs/counters.h"

namespace prisma::slowfs {

/// A handle, to be copied freely; exactly one answer is given through one of the copies.
class Call {
 public:
  Call(fuse_req_t request, Kind kind, Counters& counters)
      : request_(request), kind_(kind), counters_(&counters) {
    counters.enter(kind);
  }

  fuse_req_t request() const { return request_; }

  void fail(int error) const {
    counters_->leave(kind_, 0, true);
    fuse_reply_err(request_, error);
  }
  void answer(const fuse_entry_param& entry) const {
    counters_->leave(kind_, 0, false);
    fuse_reply_entry(request_, &entry);
  }
  void answer(const struct stat& status, double timeout_s) const {
    counters_->leave(kind_, 0, false);
    fuse_reply_attr(request_, &status, timeout_s);
  }
  /// Less than 0 when the caller did not wait for the file and nobody will release it.
  int answer(const fuse_file_info& file) const {
    counters_->leave(kind_, 0, false);
    return fuse_reply_open(request_, &file);
  }
  void answer(const void* bytes, std::size_t size) const {
    counters_->leave(kind_, kind_ == Kind::kRead ? size : 0, false);
    fuse_reply_buf(request_, static_cast<const char*>(bytes), size);
  }

 private:
  fuse_req_t request_;
  Kind kind_;
  Counters* counters_;
};

}  // namespace prisma::slowfs
