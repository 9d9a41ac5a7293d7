// The bytes of a sample as a consumer holds them: in the shared buffer, or in memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "prisma/client/attachment.h"
#include "prisma/client/own_memory.h"

namespace prisma {

/// Gives its room back when it is destroyed. Read-only, and the same bytes for all its life.
class Bytes {
 public:
  /// In memory of the caller's.
  Bytes(OwnMemory own, std::uint64_t size) : own_(std::move(own)), view_(own_.data(), size) {}

  /// A lease on an entry that was taken.
  Bytes(std::shared_ptr<const Attachment> attachment, std::uint32_t entry,
        std::span<const std::byte> view)
      : attachment_(std::move(attachment)), entry_(entry), view_(view) {}

  Bytes(Bytes&& other) noexcept = default;
  Bytes& operator=(Bytes&& other) noexcept {
    std::swap(own_, other.own_);
    std::swap(attachment_, other.attachment_);
    std::swap(entry_, other.entry_);
    std::swap(view_, other.view_);
    return *this;
  }
  ~Bytes() {
    if (attachment_) attachment_->give_back(entry_, view_.size());
  }

  std::span<const std::byte> view() const { return view_; }
  bool is_shared() const { return attachment_ != nullptr; }
  std::uint32_t entry() const { return entry_; }

 private:
  OwnMemory own_;
  std::shared_ptr<const Attachment> attachment_;
  std::uint32_t entry_ = 0;
  std::span<const std::byte> view_;
};

}  // namespace prisma
