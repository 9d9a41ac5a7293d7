#include "prisma/source/uring_source.h"

#include <utility>

#include "prisma/source/uring_driver.h"

namespace prisma {
namespace {

constexpr unsigned kRequests = 256;  // that fit the ring before they have to be submitted

}  // namespace

UringSource::UringSource(Work& work)
    : work_(work),
      inbox_(std::make_shared<Inbox>()),
      aside_(work, [inbox = inbox_] { inbox->note_end(); }),
      ring_(kRequests) {
  driver_ = std::jthread([this](std::stop_token stop) {
    const std::stop_callback wake(stop, [this] { inbox_->ring(); });
    UringDriver(work_, inbox_, aside_, ring_).run(stop);
  });
  feeder_ = std::jthread([this](std::stop_token stop) {
    while (inbox_->await_place(stop)) {
      auto read = work_.next(stop, 0);
      if (!read) return;
      inbox_->put(std::move(*read));
    }
  });
}

UringSource::~UringSource() {
  feeder_.request_stop();
  feeder_.join();  // first: the driver ends when it has done all that it was fed
}

}  // namespace prisma
