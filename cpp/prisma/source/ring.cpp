#include "prisma/source/ring.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "prisma/base/failure.h"

namespace prisma {
namespace {

// As in the kernel's headers, which may be older here than the kernel that this runs on.
constexpr unsigned kSubmitAll = 1U << 7, kSingleIssuer = 1U << 12, kDeferTaskRun = 1U << 13;
constexpr unsigned kRegisterWorkers = 19;

using Word = std::atomic_ref<std::uint32_t>;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

Ring::Ring(unsigned entries) {
  io_uring_params parameters{};
  parameters.flags = IORING_SETUP_R_DISABLED | kSubmitAll | kSingleIssuer | kDeferTaskRun;
  fd_ = Fd(static_cast<int>(::syscall(__NR_io_uring_setup, entries, &parameters)));
  if (!fd_) throw_errno("io_uring_setup");
  find_places(parameters);
}

Ring::~Ring() {
  for (const Shared& memory : {queues_, requests_}) {
    if (memory.start != nullptr) ::munmap(memory.start, memory.bytes);
  }
}

void Ring::share(Shared& memory, std::size_t bytes, std::uint64_t offset) {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(),
                       static_cast<off_t>(offset));
  if (start == MAP_FAILED) throw_errno("mmap");
  memory = {static_cast<std::byte*>(start), bytes};
}

void Ring::find_places(const io_uring_params& parameters) {
  const auto& asked = parameters.sq_off;
  const auto& done = parameters.cq_off;
  // One mapping holds both queues, since Linux 5.4.
  share(queues_,
        std::max<std::size_t>(asked.array + parameters.sq_entries * sizeof(std::uint32_t),
                              done.cqes + parameters.cq_entries * sizeof(io_uring_cqe)),
        IORING_OFF_SQ_RING);
  share(requests_, parameters.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
  const auto word = [this](std::uint32_t at) {
    return reinterpret_cast<std::uint32_t*>(queues_.start + at);
  };
  asked_ = {word(asked.head), word(asked.tail), parameters.sq_entries};
  done_ = {word(done.head), word(done.tail), parameters.cq_entries};
  completions_ = reinterpret_cast<io_uring_cqe*>(queues_.start + done.cqes);
  for (std::uint32_t entry = 0; entry < asked_.entries; ++entry) word(asked.array)[entry] = entry;
}

void Ring::enable() {
  const auto call =
      ::syscall(__NR_io_uring_register, fd_.get(), IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  if (call != 0) throw_errno("io_uring_register");
}

void Ring::set_workers(unsigned count) {
  // Those for files and for everything else. A refusal leaves the kernel's default, which works.
  std::array<std::uint32_t, 2> most{count, count};
  ::syscall(__NR_io_uring_register, fd_.get(), kRegisterWorkers, most.data(), most.size());
}

void Ring::open(std::uint64_t id, const char* path, int flags) {
  io_uring_sqe& request = prepare(id, IORING_OP_OPENAT, AT_FDCWD);
  request.addr = address(path);
  request.open_flags = static_cast<std::uint32_t>(flags);
  request.flags = IOSQE_ASYNC;  // tried at once, it would wait where opening takes long
}

void Ring::stat(std::uint64_t id, const Fd& file, struct statx& status) {
  io_uring_sqe& request = prepare(id, IORING_OP_STATX, file.get());
  request.addr = address("");
  request.len = STATX_BASIC_STATS;
  request.off = address(&status);
  request.statx_flags = AT_EMPTY_PATH;
}

void Ring::read(std::uint64_t id, const Fd& file, std::byte* to, std::uint32_t bytes,
                std::uint64_t offset) {
  io_uring_sqe& request = prepare(id, IORING_OP_READ, file.get());
  request.addr = address(to);
  request.len = bytes;
  request.off = offset;
}

void Ring::close(std::uint64_t id, Fd file) { prepare(id, IORING_OP_CLOSE, file.release()); }

void Ring::await_input(std::uint64_t id, const Fd& file) {
  prepare(id, IORING_OP_POLL_ADD, file.get()).poll32_events = POLLIN;
}

io_uring_sqe& Ring::prepare(std::uint64_t id, std::uint8_t operation, int file) {
  while (next_ - Word(*asked_.head).load(std::memory_order_acquire) == asked_.entries) submit();
  auto* requests = reinterpret_cast<io_uring_sqe*>(requests_.start);
  io_uring_sqe& request = requests[next_++ & (asked_.entries - 1)];
  request = {};
  request.opcode = operation;
  request.fd = file;
  request.user_data = id;
  return request;
}

void Ring::enter(unsigned least) {
  Word(*asked_.tail).store(next_, std::memory_order_release);
  const auto count = ::syscall(__NR_io_uring_enter, fd_.get(), next_ - submitted_, least,
                               IORING_ENTER_GETEVENTS, nullptr, 0);
  if (count >= 0) {
    submitted_ += static_cast<std::uint32_t>(count);
  } else if (errno != EINTR && errno != EAGAIN && errno != EBUSY) {  // those: take, and come again
    throw_errno("io_uring_enter");
  }
}

std::optional<Completion> Ring::take() {
  const std::uint32_t head = Word(*done_.head).load(std::memory_order_relaxed);
  if (head == Word(*done_.tail).load(std::memory_order_acquire)) return {};
  const io_uring_cqe& completion = completions_[head & (done_.entries - 1)];
  const Completion taken{completion.user_data, completion.res};
  Word(*done_.head).store(head + 1, std::memory_order_release);
  return taken;
}

}  // namespace prisma
