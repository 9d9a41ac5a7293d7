// Where bytes come from. Every kind of source passes source_contract_test.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "prisma/source/work.h"

namespace prisma {

/// Does the reads that a `Work` hands out, several at once, for as long as it lives. At its end it
/// is done with all that it was given.
class Source {
 public:
  virtual ~Source() = default;

  /// Has that many reads in flight at most. Never waits for a read. Call it now and then.
  virtual void set_depth(std::size_t depth) = 0;
};

enum class SourceKind { kThreads, kIoUring };
inline constexpr std::array kSourceKinds{SourceKind::kThreads, SourceKind::kIoUring};

std::string_view name_of(SourceKind kind);
/// Throws std::invalid_argument if there is none of that name.
SourceKind source_named(std::string_view name);

/// Why there can be no such source here; empty if there can.
std::string why_not(SourceKind kind);

/// `work` outlives it. Throws std::system_error where there can be none.
std::unique_ptr<Source> make_source(SourceKind kind, Work& work);

}  // namespace prisma
