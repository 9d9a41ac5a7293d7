#include "prisma/base/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <string>

#include "prisma/base/failure.h"

namespace prisma {

Fd sealed_memfd(const char* name, std::uint64_t bytes) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) throw_errno("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) throw_errno("ftruncate");
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    throw_errno("F_ADD_SEALS");
  return file;
}

Fd reopened_read_only(const Fd& memfd) {
  const std::string path = "/proc/self/fd/" + std::to_string(memfd.get());
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_errno("open /proc/self/fd");
  return file;
}

std::uint64_t file_bytes(const Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno("fstat");
  return static_cast<std::uint64_t>(status.st_size);
}

Mapping::Mapping(const Fd& file, std::uint64_t bytes, Access access) : bytes_(bytes) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* start = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (start == MAP_FAILED) throw_errno("mmap");
  start_ = static_cast<std::byte*>(start);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(start_, bytes_);
}

}  // namespace prisma
