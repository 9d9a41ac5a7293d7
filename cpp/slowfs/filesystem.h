// A directory passed through read-only: same names, same bytes, but slow and, where asked, faulty.
#pragma once

#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <fuse3/fuse_lowlevel.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "prisma/base/fd.h"
#include "slowfs/behaviour.h"
#include "slowfs/call.h"
#include "slowfs/counters.h"
#include "slowfs/faults.h"
#include "slowfs/handles.h"
#include "slowfs/rate_limit.h"
#include "slowfs/schedule.h"
#include "slowfs/tree.h"

namespace prisma::slowfs {

/// Thread-safe. Each method answers one request, now or from the schedule.
class Filesystem {
 public:
  /// Throws std::system_error when the source is no directory that can be read.
  Filesystem(const std::string& source, const Behaviour& behaviour, std::size_t max_read,
             Schedule& schedule);

  Behaviour behaviour() const;
  void set_behaviour(const Behaviour& behaviour);
  Counters& counters() { return counters_; }
  Faults& faults() { return faults_; }
  void release(std::uint64_t rule);  // takes a rule away and lets go what it holds

  void configure(fuse_conn_info& connection) const;
  void lookup(fuse_req_t request, fuse_ino_t parent, const char* name);
  void forget(fuse_ino_t number, std::uint64_t lookups) { tree_.forget(number, lookups); }
  void getattr(fuse_req_t request, fuse_ino_t number);
  void readlink(fuse_req_t request, fuse_ino_t number);
  void open(fuse_req_t request, fuse_ino_t number, const fuse_file_info& info);
  void read(fuse_req_t request, std::size_t size, off_t offset, const fuse_file_info& info);
  void release(fuse_req_t request, const fuse_file_info& info);
  void opendir(fuse_req_t request, fuse_ino_t number, const fuse_file_info& info);
  void readdir(fuse_req_t request, std::size_t size, off_t offset, const fuse_file_info& info);
  void releasedir(fuse_req_t request, const fuse_file_info& info);
  void statfs(fuse_req_t request);

 private:
  struct OpenFile {
    Fd fd;
    std::string path;
    std::uint64_t visit;  // how often the path was opened before
  };
  struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  using Directory = std::unique_ptr<DIR, CloseDirectory>;

  /// Runs `act` when the occasion's delay is over, or fails the call as the verdict says.
  void later(const Call& call, const Occasion& occasion, const Verdict& verdict,
             TimePoint not_before, std::function<void()> act);
  void wait(const Call& call, TimePoint due, const Verdict& verdict, std::function<void()> act);
  void open_now(const Call& call, const std::string& path, std::uint64_t visit,
                fuse_file_info info);
  fuse_entry_param entry_of(const std::string& path, const struct stat& status);

  const Fd root_;
  const std::size_t max_read_;
  Schedule& schedule_;
  mutable std::mutex mutex_;  // guards behaviour_
  Behaviour behaviour_;
  Handles<std::unique_ptr<OpenFile>> files_;  // from here on, all lock for themselves
  Handles<Directory> directories_;
  Tree tree_;
  Counters counters_;
  Faults faults_;
  RateLimit bandwidth_;
  RateLimit read_rate_;
};

}  // namespace prisma::slowfs
