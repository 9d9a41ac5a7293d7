#include "prisma/source/source.h"

#include "prisma/source/posix_source.h"

namespace prisma {

std::string_view name_of(SourceKind) { return "threads"; }

std::string why_not(SourceKind) { return {}; }

std::unique_ptr<Source> make_source(SourceKind, Work& work) {
  return std::make_unique<PosixSource>(work);
}

}  // namespace prisma
