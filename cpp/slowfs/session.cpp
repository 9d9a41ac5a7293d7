#include "slowfs/session.h"

#include <stdexcept>
#include <string>

#include "slowfs/operations.h"

namespace prisma::slowfs {
namespace {

class Arguments {
 public:
  explicit Arguments(const Options &options) {
    add("prisma-slowfs");
    add("-oro,default_permissions,auto_unmount,fsname=prisma-slowfs,subtype="
        "prisma-slowfs");
    add("-omax_read=" + std::to_string(options.max_read));
    if (options.allow_other) add("-oallow_other");
  }
  ~Arguments() { fuse_opt_free_args(&all_); }
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  fuse_args *get() { return &all_; }

 private:
  void add(const std::string &argument) {
    if (fuse_opt_add_arg(&all_, argument.c_str()) != 0) throw std::bad_alloc();
  }

  fuse_args all_ = FUSE_ARGS_INIT(0, nullptr);
};

}  // namespace

Session::Session(const Options &options, Filesystem &filesystem) {
  Arguments arguments(options);
  session_.reset(
      fuse_session_new(arguments.get(), &operations(), sizeof(fuse_lowlevel_ops), &filesystem));
  if (!session_) throw std::runtime_error("libfuse could not be started");
  if (fuse_session_mount(session_.get(), options.mountpoint.c_str()) != 0) {
    throw std::runtime_error("could not mount at " + options.mountpoint);
  }
}

Session::~Session() { fuse_session_unmount(session_.get()); }

}  // namespace prisma::slowfs
