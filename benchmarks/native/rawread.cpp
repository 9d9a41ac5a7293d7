// prisma-rawread: the fastest plain parallel reader we can write. What it needs is the limit that
// benchmarks divide by. It keeps no order and hands nothing on.
//
//   prisma-rawread read THREADS LIST       reads every file once, touching a byte of every page
//   prisma-rawread drop THREADS LIST       makes the page cache forget the files
//   prisma-rawread resident THREADS LIST   counts the pages that the page cache holds
//
// LIST names a file of paths, each ended by a zero byte. Answers are one line of JSON.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "list.h"

namespace prisma::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPieceBytes = 4 << 20;  // the most that one read asks for

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::generic_category().message(errno).c_str());
  std::exit(1);
}

/// Private memory that begins on a page.
class Piece {
 public:
  Piece()
      : start_(static_cast<unsigned char*>(::mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (start_ == MAP_FAILED) give_up("mmap");
  }
  ~Piece() { ::munmap(start_, kPieceBytes); }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  unsigned char* data() const { return start_; }

 private:
  unsigned char* start_;
};

class OpenedFile {
 public:
  explicit OpenedFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) give_up(path);
  }
  ~OpenedFile() { ::close(fd_); }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Reads a file to its end. A regular file's read falls short only there.
std::size_t read_all(const std::string& path, unsigned char* to, std::atomic<unsigned>& sum) {
  const OpenedFile file(path);
  std::size_t total = 0;
  while (true) {
    const ssize_t got = ::pread(file.fd(), to, kPieceBytes, static_cast<off_t>(total));
    if (got < 0) give_up(path);
    unsigned touched = 0;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got); at += kPage) touched += to[at];
    sum.fetch_add(touched, std::memory_order_relaxed);
    total += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < kPieceBytes) return total;
  }
}

/// Runs `work` for every path, on so many threads, each with a piece of memory of its own.
void for_each(const std::vector<std::string>& paths, std::size_t threads,
              const std::function<void(const std::string&, unsigned char*)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      const Piece piece;
      for (std::size_t n = next++; n < paths.size(); n = next++) work(paths[n], piece.data());
    });
  }
}

void read(const std::vector<std::string>& paths, std::size_t threads) {
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<unsigned> sum = 0;
  std::atomic<double> first_s = -1;
  const auto start = Clock::now();
  for_each(paths, threads, [&](const std::string& path, unsigned char* to) {
    bytes += read_all(path, to, sum);
    double none = -1;
    if (first_s.load(std::memory_order_relaxed) < 0) {
      first_s.compare_exchange_strong(none, seconds_since(start));
    }
  });
  std::printf(
      "{\"wall_s\": %.6f, \"first_s\": %.6f, \"bytes\": %llu, \"samples\": %zu, \"sum\": %u}\n",
      seconds_since(start), first_s.load(), static_cast<unsigned long long>(bytes.load()),
      paths.size(), sum.load());
}

void drop(const std::vector<std::string>& paths, std::size_t threads) {
  for_each(paths, threads, [](const std::string& path, unsigned char*) {
    const OpenedFile file(path);
    ::fdatasync(file.fd());  // pages that are not written yet cannot be dropped
    if (::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) != 0) give_up(path);
  });
  std::printf("{\"samples\": %zu}\n", paths.size());
}

std::size_t resident_pages(const std::string& path, std::size_t& pages) {
  const OpenedFile file(path);
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) give_up(path);
  const auto size = static_cast<std::size_t>(status.st_size);
  pages = (size + kPage - 1) / kPage;
  if (pages == 0) return 0;
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (start == MAP_FAILED) give_up(path);
  std::vector<unsigned char> present(pages);
  if (::mincore(start, size, present.data()) != 0) give_up(path);
  ::munmap(start, size);
  std::size_t resident = 0;
  for (const unsigned char page : present) resident += page & 1;
  return resident;
}

void resident(const std::vector<std::string>& paths, std::size_t threads) {
  std::atomic<std::size_t> all = 0, there = 0;
  for_each(paths, threads, [&](const std::string& path, unsigned char*) {
    std::size_t pages = 0;
    there += resident_pages(path, pages);
    all += pages;
  });
  std::printf("{\"pages\": %zu, \"resident\": %zu}\n", all.load(), there.load());
}

int run(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: prisma-rawread read|drop|resident THREADS LIST\n");
    return 2;
  }
  const std::string_view task = words[1];
  const std::size_t threads = std::strtoul(words[2], nullptr, 10);
  const auto paths = paths_in(words[3]);
  if (threads == 0 || (task != "read" && task != "drop" && task != "resident")) return 2;
  (task == "read" ? read : task == "drop" ? drop : resident)(paths, threads);
  return 0;
}

}  // namespace
}  // namespace prisma::bench

int main(int count, char** words) { return prisma::bench::run(count, words); }
