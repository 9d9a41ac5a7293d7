#include "prisma/source/source.h"

#include <stdexcept>
#include <system_error>

#include "prisma/source/posix_source.h"
#include "prisma/source/uring_source.h"

namespace prisma {

std::string_view name_of(SourceKind kind) {
  return kind == SourceKind::kIoUring ? "io_uring" : "threads";
}

SourceKind source_named(std::string_view name) {
  for (const SourceKind kind : kSourceKinds) {
    if (name_of(kind) == name) return kind;
  }
  throw std::invalid_argument("no source is called " + std::string(name));
}

std::string why_not(SourceKind kind) {
  if (kind == SourceKind::kThreads) return {};
  try {
    Ring(1).enable();
  } catch (const std::system_error& refused) {
    return refused.what();
  }
  return {};
}

std::unique_ptr<Source> make_source(SourceKind kind, Work& work) {
  if (kind == SourceKind::kIoUring) return std::make_unique<UringSource>(work);
  return std::make_unique<PosixSource>(work);
}

}  // namespace prisma
