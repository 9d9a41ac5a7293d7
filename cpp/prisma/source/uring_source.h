// Reads files with one io_uring, whatever the number of reads in flight.
//
// Three threads: the feeder waits for work; the driver has the ring, and takes each read from step
// to step as completions come; what is unusual goes aside to threads of its own. A step that does
// not wait is done at once, by a plain call: an open of a name that the kernel has in memory, the
// size of a file on a local disk, bytes in the page cache. All else is left to the kernel.
#pragma once

#include <memory>
#include <thread>

#include "prisma/source/aside.h"
#include "prisma/source/inbox.h"
#include "prisma/source/ring.h"
#include "prisma/source/source.h"

namespace prisma {

class UringSource final : public Source {
 public:
  /// Throws std::system_error where the kernel refuses.
  explicit UringSource(Work& work);
  ~UringSource() override;

  void set_depth(std::size_t depth) override { inbox_->set_limit(depth); }

 private:
  Work& work_;                    // outlives this; locks for itself
  std::shared_ptr<Inbox> inbox_;  // files that the engine holds may be closed after this has gone
  Aside aside_;
  Ring ring_;
  std::jthread driver_, feeder_;  // last: joined before anything they use is destroyed
};

}  // namespace prisma
