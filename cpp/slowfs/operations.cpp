#include "slowfs/operations.h"

#include "slowfs/filesystem.h"

namespace prisma::slowfs {
namespace {

Filesystem& self_of(fuse_req_t request) {
  return *static_cast<Filesystem*>(fuse_req_userdata(request));
}

}  // namespace

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops kOperations = [] {
    fuse_lowlevel_ops all{};
    all.init = [](void* self, fuse_conn_info* connection) {
      static_cast<Filesystem*>(self)->configure(*connection);
    };
    all.lookup = [](fuse_req_t request, fuse_ino_t parent, const char* name) {
      self_of(request).lookup(request, parent, name);
    };
    all.forget = [](fuse_req_t request, fuse_ino_t number, std::uint64_t lookups) {
      self_of(request).forget(number, lookups);
      fuse_reply_none(request);
    };
    all.forget_multi = [](fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
      for (std::size_t i = 0; i < count; ++i) {
        self_of(request).forget(forgets[i].ino, forgets[i].nlookup);
      }
      fuse_reply_none(request);
    };
    all.getattr = [](fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
      self_of(request).getattr(request, number);
    };
    all.readlink = [](fuse_req_t request, fuse_ino_t number) {
      self_of(request).readlink(request, number);
    };
    all.open = [](fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
      self_of(request).open(request, number, *info);
    };
    all.read = [](fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
                  fuse_file_info* info) { self_of(request).read(request, size, offset, *info); };
    all.release = [](fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
      self_of(request).release(request, *info);
    };
    all.opendir = [](fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
      self_of(request).opendir(request, number, *info);
    };
    all.readdir = [](fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
                     fuse_file_info* info) {
      self_of(request).readdir(request, size, offset, *info);
    };
    all.releasedir = [](fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
      self_of(request).releasedir(request, *info);
    };
    all.statfs = [](fuse_req_t request, fuse_ino_t) { self_of(request).statfs(request); };
    return all;
  }();
  return kOperations;
}

}  // namespace prisma::slowfs
