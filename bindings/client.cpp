#include "prisma/client/client.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "gil.h"
#include "prisma/client/direct.h"
#include "rooms.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace prisma {
namespace {

/// A sample as Python holds it: a read-only buffer whose room is given back with the last view.
class HeldSample {
 public:
  HeldSample(Taken taken, Sample sample, std::uint64_t position, nb::object client)
      : sample_(std::move(sample)), position_(position), client_(std::move(client)) {
    if (auto* large = std::get_if<Large>(&taken)) {
      large_ = std::make_shared<const Large>(std::move(*large));
    } else {
      bytes_ = std::move(std::get<Bytes>(taken));
    }
  }

  const Sample& sample() const { return sample_; }
  std::uint64_t position() const { return position_; }
  nb::object client() const { return client_; }

  /// Nothing for a small one, and for one that was made whole.
  const std::shared_ptr<const Large>& large() const { return large_; }
  std::uint64_t size() const { return large_ ? large_->size() : view().size(); }
  bool is_shared() const { return large_ || bytes_->is_shared(); }
  std::span<const std::byte> view() const { return bytes_->view(); }

  /// Brings a large one together in this process's memory. Raises what reading it raises.
  void make_whole();

 private:
  Sample sample_;
  std::uint64_t position_;
  nb::object client_;
  std::shared_ptr<const Large> large_;  // or
  std::optional<Bytes> bytes_;
};

[[noreturn]] void raise(const Failure& failure) {
  const auto name = nb::steal(PyUnicode_DecodeFSDefaultAndSize(
      failure.path.data(), static_cast<Py_ssize_t>(failure.path.size())));
  errno = failure.error_number;
  PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name.ptr());
  throw nb::python_error();
}

void warn(const std::string& text) {
  if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) throw nb::python_error();
}

void HeldSample::make_whole() {
  const auto large = large_;  // another thread may do the same meanwhile
  if (!large) return;
  Client& client = nb::cast<Client&>(client_);
  if (client.first_to(Client::Notice::kGathered)) {
    warn(std::string("PRISMA: ")
             .append(std::to_string(size()))
             .append(" bytes at once do not fit the buffer and are brought together in this "
                     "process's memory; chunks() or open() would stream them"));
  }
  Taken whole = [&] {
    const NoGil no_gil;
    return client.gather(*large);
  }();
  if (const auto* failure = std::get_if<Failure>(&whole)) raise(*failure);
  if (!large_) return;
  bytes_ = std::move(std::get<Bytes>(whole));
  large_.reset();
}

int fill_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto& sample = *nb::inst_ptr<HeldSample>(nb::handle(self));
  try {
    sample.make_whole();
  } catch (nb::python_error& error) {
    error.restore();
    view->obj = nullptr;
    return -1;
  }
  const auto bytes = sample.view();
  void* start = const_cast<std::byte*>(bytes.data());
  return PyBuffer_FillInfo(view, self, start, static_cast<Py_ssize_t>(bytes.size()), 1, flags);
}

PyType_Slot sample_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(fill_buffer)},
                              {0, nullptr}};

/// The pieces of a sample, one after another.
class Chunks {
 public:
  explicit Chunks(nb::object sample)
      : sample_(std::move(sample)), large_(nb::cast<const HeldSample&>(sample_).large()) {}

  nb::object next() {
    if (next_ >= (large_ ? large_->chunks() : 1)) throw nb::stop_iteration();
    const std::uint64_t chunk = next_++;
    return large_ ? take(chunk) : sample_;
  }

 private:
  nb::object take(std::uint64_t chunk) {
    const auto& sample = nb::cast<const HeldSample&>(sample_);
    auto& client = nb::cast<Client&>(sample.client());
    Taken taken = [&] {
      const NoGil no_gil;
      return client.take_chunk(*large_, chunk);
    }();
    if (const auto* failure = std::get_if<Failure>(&taken)) raise(*failure);
    return nb::cast(
        HeldSample(std::move(taken), large_->range(chunk), sample.position(), sample.client()));
  }

  nb::object sample_;
  std::shared_ptr<const Large> large_;
  std::uint64_t next_ = 0;
};

Sample sample_of(const nb::bytes& path, std::uint64_t offset, std::uint64_t length) {
  return {{path.c_str(), path.size()}, offset, length};
}

/// The bytes, or the OSError that open() would have raised.
HeldSample held_or_raised(Taken taken, Sample sample, std::uint64_t position, nb::object client) {
  if (const auto* failure = std::get_if<Failure>(&taken)) raise(*failure);
  if (nb::cast<Client&>(client).first_to(Client::Notice::kCopied)) {
    warn(
        "PRISMA: more than half of its buffer is held by samples that are kept; until they are "
        "let go, further ones are copies in this process's memory");
  }
  return {std::move(taken), std::move(sample), position, std::move(client)};
}

void raise_pending_signal() {
  const WithGil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

std::unique_ptr<Client> attach(const std::string& address, std::uint64_t session) {
  try {
    const NoGil no_gil;
    return std::make_unique<Client>(wire::connect_to(address), session, raise_pending_signal);
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, address.c_str());
    throw nb::python_error();
  }
}

HeldSample take_at(nb::object self, std::uint32_t plan, std::uint32_t lane, std::uint64_t position,
                   nb::bytes path, std::uint64_t offset, std::uint64_t length) {
  auto& client = nb::cast<Client&>(self);
  Sample sample = sample_of(path, offset, length);
  Taken taken = [&] {
    const NoGil no_gil;
    return client.take(plan, lane, position, sample);
  }();
  return held_or_raised(std::move(taken), std::move(sample), position, std::move(self));
}

HeldSample take_path(nb::object self, nb::bytes path, std::uint64_t offset, std::uint64_t length) {
  auto& client = nb::cast<Client&>(self);
  Sample sample = sample_of(path, offset, length);
  Taken taken = [&] {
    const NoGil no_gil;
    return client.take(sample);
  }();
  return held_or_raised(std::move(taken), std::move(sample), 0, std::move(self));
}

std::optional<HeldSample> take_planned(nb::object self, nb::bytes path, std::uint64_t offset,
                                       std::uint64_t length) {
  auto& client = nb::cast<Client&>(self);
  Sample sample = sample_of(path, offset, length);
  std::optional<Taken> taken = [&] {
    const NoGil no_gil;
    return client.take_if_planned(sample);
  }();
  if (!taken) return {};
  return held_or_raised(std::move(*taken), std::move(sample), 0, std::move(self));
}

HeldSample read_file(nb::bytes path, std::uint64_t offset, std::uint64_t length,
                     std::uint64_t position) {
  Sample sample = sample_of(path, offset, length);
  Taken taken = [&] {
    const NoGil no_gil;
    return read_directly(sample);
  }();
  if (const auto* failure = std::get_if<Failure>(&taken)) raise(*failure);
  return {std::move(taken), std::move(sample), position, nb::none()};
}

void announce(Client& client, std::uint32_t plan, std::uint32_t lane, std::uint64_t first_position,
              nb::list samples, bool by_path) {
  std::vector<Sample> list;
  list.reserve(samples.size());
  for (nb::handle item : samples) {
    const auto range = nb::cast<nb::tuple>(item);
    list.push_back(sample_of(nb::cast<nb::bytes>(range[0]), nb::cast<std::uint64_t>(range[1]),
                             nb::cast<std::uint64_t>(range[2])));
  }
  const NoGil no_gil;
  client.announce(plan, lane, by_path ? wire::NamedBy::kPath : wire::NamedBy::kPosition,
                  first_position, list);
}

void cancel(Client& client, std::uint32_t plan, std::optional<std::uint32_t> lane) {
  const NoGil no_gil;
  client.cancel(plan, lane.value_or(UINT32_MAX));
}

nb::dict counters(const Client& client) {
  nb::dict all;
  const ClientSlot& mine = client.counters();
  all["hits"] = mine.hits.load();
  all["lates"] = mine.lates.load();
  all["misses"] = mine.misses.load();
  all["unplanned"] = mine.unplanned.load();
  all["taken_bytes"] = mine.taken_bytes.load();
  all["direct_reads"] = mine.direct_reads.load();
  all["direct_bytes"] = mine.direct_bytes.load();
  all["asides"] = mine.asides.load();
  all["stall_ns"] = mine.stall_ns.load();
  all["private_copies"] = mine.private_copies.load();
  const Header& engine = client.engine();
  all["engine_pid"] = engine.engine_pid;
  all["depth"] = engine.depth.load();
  all["memory_bytes"] = engine.data_bytes;
  all["buffer_bytes"] = engine.buffer_bytes.load();
  all["reads"] = engine.counters.reads.load();
  all["read_bytes"] = engine.counters.read_bytes.load();
  all["failures"] = engine.counters.failures.load();
  all["retries"] = engine.counters.retries.load();
  all["rereads"] = engine.counters.rereads.load();
  all["used_bytes"] = engine.counters.used_bytes.load();
  all["reads_in_flight"] = engine.counters.in_flight.load();
  all["reads_in_flight_max"] = engine.counters.most_in_flight.load();
  return all;
}

}  // namespace

void bind_client(nb::module_& m) {
  m.attr("TO_THE_END") = kToTheEnd;

  nb::class_<Chunks>(m, "Chunks", "Iterates over the pieces of a sample.")
      .def(
          "__iter__", [](nb::handle self) { return self; }, nb::sig("def __iter__(self) -> Chunks"))
      .def("__next__", &Chunks::next, nb::sig("def __next__(self) -> Sample"));

  nb::class_<HeldSample>(m, "Sample", nb::type_slots(sample_slots),
                         "One sample: a read-only buffer. Its room in the shared buffer is given "
                         "back when the last view of it is gone.")
      .def("__len__", &HeldSample::size)
      .def(
          "__bytes__",
          [](HeldSample& sample) {
            sample.make_whole();
            return nb::bytes(sample.view().data(), sample.view().size());
          },
          nb::sig("def __bytes__(self) -> bytes"))
      .def(
          "view", [](nb::handle self) { return nb::steal(PyMemoryView_FromObject(self.ptr())); },
          nb::sig("def view(self) -> memoryview"),
          "Its bytes in place. The room stays taken as long as the view lives.")
      .def(
          "chunks", [](nb::object self) { return Chunks(std::move(self)); },
          "Its pieces in order, each a sample: one if it is small; a large one streams through the "
          "buffer. Raises OSError where reading fails.")
      .def_prop_ro(
          "path",
          [](const HeldSample& sample) {
            return nb::bytes(sample.sample().path.data(), sample.sample().path.size());
          },
          "The file's path, as bytes.")
      .def_prop_ro("position", &HeldSample::position, "Where it stands in its plan, from 0.")
      .def_prop_ro(
          "is_shared", &HeldSample::is_shared,
          "Whether its bytes come from the shared buffer, not from memory of this process.")
      .def_prop_ro(
          "is_large", [](const HeldSample& sample) { return sample.large() != nullptr; },
          "Whether it is too large for the buffer in one piece. Asking for all of its bytes at "
          "once brings them together in this process's memory.");

  m.def("read_directly", &read_file, "path"_a, "offset"_a, "length"_a, "position"_a = 0,
        nb::sig("def read_directly(path: bytes, offset: int, length: int, position: int = 0) -> "
                "Sample"),
        "A sample of this process's own, without an engine.");

  nb::class_<Client>(m, "Client", "One process's connection to an engine.")
      .def(nb::new_(&attach), "address"_a, "session"_a = 0, "Raises OSError when none answers.")
      .def("announce", &announce, "plan"_a, "lane"_a, "first_position"_a, "samples"_a,
           "by_path"_a = false,
           nb::sig("def announce(self, plan: int, lane: int, first_position: int, "
                   "samples: list[tuple[bytes, int, int]], by_path: bool = False) -> None"),
           "Says which (path, offset, length) come next: for take_at, or by path for everybody in "
           "the session.")
      .def("settle", &Client::settle, nb::call_guard<NoGil>(),
           "Waits until the engine knows what was announced here, or is gone.")
      .def("cancel", &cancel, "plan"_a, "lane"_a = nb::none(),
           "Drops what is left of a plan, or of one of its lanes.")
      .def("tune", &Client::tune, "depth"_a, "buffer_bytes"_a, nb::call_guard<NoGil>(),
           "Sets the knobs; 0 leaves one as it is.")
      .def("take_at", &take_at, "plan"_a, "lane"_a, "position"_a, "path"_a, "offset"_a, "length"_a,
           nb::sig("def take_at(self, plan: int, lane: int, position: int, path: bytes, "
                   "offset: int, length: int) -> Sample"),
           "The sample at this position of a lane.")
      .def("take_path", &take_path, "path"_a, "offset"_a, "length"_a,
           nb::sig("def take_path(self, path: bytes, offset: int, length: int) -> Sample"),
           "The next untaken occurrence of a range in the session's plans, or a direct read.")
      .def("take_planned", &take_planned, "path"_a, "offset"_a, "length"_a,
           nb::sig("def take_planned(self, path: bytes, offset: int, length: int) -> "
                   "Sample | None"),
           "The same, or None, and nothing read, when no plan holds it.")
      .def_prop_ro("session", &Client::session, "Clients of one session take from its plans.")
      .def_prop_ro("engine_pid", &Client::engine_pid, "The engine's process.")
      .def_prop_ro("engine_lives", &Client::engine_lives, "Whether the engine is still there.")
      .def_prop_ro("is_lost", &Client::is_lost,
                   "Whether the engine was found to be gone; asks nobody.")
      .def_prop_ro("is_ours", &Client::is_ours, "False in a forked child.")
      .def("counters", &counters, nb::sig("def counters(self) -> dict[str, int]"),
           "What was counted so far, by name.");
}

}  // namespace prisma
