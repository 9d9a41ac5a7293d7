#include "prisma/source/posix_source.h"

#include <utility>

#include "prisma/source/one_read.h"

namespace prisma {

void PosixSource::set_depth(std::size_t depth) {
  for (std::size_t number = 0; number < depth; ++number) {
    if (number == readers_.size()) {
      start(readers_.emplace_back(), number);
    } else if (readers_[number].over.load(std::memory_order_acquire)) {
      start(readers_[number], number);
    }
  }
}

void PosixSource::start(Reader& reader, std::size_t number) {
  reader.over.store(false, std::memory_order_release);
  reader.thread = std::jthread([this, &reader, number](std::stop_token stop) {
    while (auto read = work_.next(stop, number)) perform(work_, std::move(*read), stop);
    reader.over.store(true, std::memory_order_release);
  });
}

}  // namespace prisma
