#include "prisma/client/client.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>

#include "rooms.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace prisma {
namespace {

/// A sample as Python holds it: a read-only buffer whose room is given back with the last view.
class HeldSample {
 public:
  HeldSample(Bytes bytes, std::string path, std::uint64_t position)
      : bytes_(std::move(bytes)), path_(std::move(path)), position_(position) {}

  std::span<const std::byte> view() const { return bytes_.view(); }
  bool is_shared() const { return bytes_.is_shared(); }
  nb::bytes path() const { return nb::bytes(path_.data(), path_.size()); }
  std::uint64_t position() const { return position_; }

 private:
  Bytes bytes_;
  std::string path_;
  std::uint64_t position_;
};

int fill_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto bytes = nb::inst_ptr<HeldSample>(nb::handle(self))->view();
  void* start = const_cast<std::byte*>(bytes.data());
  return PyBuffer_FillInfo(view, self, start, static_cast<Py_ssize_t>(bytes.size()), 1, flags);
}

PyType_Slot sample_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(fill_buffer)},
                              {0, nullptr}};

Sample sample_of(const nb::bytes& path, std::uint64_t offset, std::uint64_t length) {
  return {{path.c_str(), path.size()}, offset, length};
}

/// The bytes, or the OSError that open() would have raised.
HeldSample held_or_raised(Taken taken, const Sample& sample, std::uint64_t position) {
  if (auto* bytes = std::get_if<Bytes>(&taken)) {
    return {std::move(*bytes), sample.path, position};
  }
  const auto& failure = std::get<Failure>(taken);
  const auto name = nb::steal(PyUnicode_DecodeFSDefaultAndSize(
      failure.path.data(), static_cast<Py_ssize_t>(failure.path.size())));
  errno = failure.error_number;
  PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name.ptr());
  throw nb::python_error();
}

void raise_pending_signal() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

std::unique_ptr<Client> attach(const std::string& address, std::uint64_t session) {
  const nb::gil_scoped_release no_gil;
  auto client = std::make_unique<Client>(wire::connect_to(address), session);
  client->while_waiting(raise_pending_signal);
  return client;
}

HeldSample take_at(Client& client, std::uint32_t plan, std::uint64_t position, nb::bytes path,
                   std::uint64_t offset, std::uint64_t length) {
  const Sample sample = sample_of(path, offset, length);
  Taken taken = [&] {
    const nb::gil_scoped_release no_gil;
    return client.take(plan, 0, position, sample);
  }();
  return held_or_raised(std::move(taken), sample, position);
}

HeldSample take_path(Client& client, nb::bytes path, std::uint64_t offset, std::uint64_t length) {
  const Sample sample = sample_of(path, offset, length);
  Taken taken = [&] {
    const nb::gil_scoped_release no_gil;
    return client.take(sample);
  }();
  return held_or_raised(std::move(taken), sample, 0);
}

void announce(Client& client, std::uint32_t plan, std::uint64_t first_position, nb::list samples) {
  std::vector<Sample> list;
  for (nb::handle item : samples) {
    const auto range = nb::cast<nb::tuple>(item);
    list.push_back(sample_of(nb::cast<nb::bytes>(range[0]), nb::cast<std::uint64_t>(range[1]),
                             nb::cast<std::uint64_t>(range[2])));
  }
  const nb::gil_scoped_release no_gil;
  client.announce(plan, 0, wire::NamedBy::kPosition, first_position, list);
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
  all["stall_ns"] = mine.stall_ns.load();
  all["private_copies"] = mine.private_copies.load();
  const Header& engine = client.engine();
  all["engine_pid"] = engine.engine_pid;
  all["depth"] = engine.depth.load();
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

  nb::class_<HeldSample>(m, "Sample", nb::type_slots(sample_slots),
                         "One sample: a read-only buffer. Its room in the shared buffer is given "
                         "back when the last view of it is gone.")
      .def("__len__", [](const HeldSample& sample) { return sample.view().size(); })
      .def("__bytes__",
           [](const HeldSample& sample) {
             return nb::bytes(sample.view().data(), sample.view().size());
           })
      .def(
          "view", [](nb::handle self) { return nb::steal(PyMemoryView_FromObject(self.ptr())); },
          nb::sig("def view(self) -> memoryview"),
          "Its bytes in place. The room stays taken as long as the view lives.")
      .def_prop_ro("path", &HeldSample::path, "The file's path, as bytes.")
      .def_prop_ro("position", &HeldSample::position, "Where it stands in its plan, from 0.")
      .def_prop_ro("is_shared", &HeldSample::is_shared,
                   "Whether its bytes lie in the shared buffer, not in memory of this process.");

  nb::class_<Client>(m, "Client", "One process's connection to an engine.")
      .def(nb::new_(&attach), "address"_a, "session"_a = 0, "Raises OSError when none answers.")
      .def("announce", &announce, "plan"_a, "first_position"_a, "samples"_a,
           nb::sig("def announce(self, plan: int, first_position: int, "
                   "samples: list[tuple[bytes, int, int]]) -> None"),
           "Says which (path, offset, length) come next.")
      .def("cancel", &Client::cancel, "plan"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Drops what is left of a plan.")
      .def("tune", &Client::tune, "depth"_a, "buffer_bytes"_a,
           nb::call_guard<nb::gil_scoped_release>(), "Sets the knobs; 0 leaves one as it is.")
      .def("take_at", &take_at, "plan"_a, "position"_a, "path"_a, "offset"_a, "length"_a,
           "The sample at this position of a plan.")
      .def("take_path", &take_path, "path"_a, "offset"_a, "length"_a,
           "The next untaken occurrence of a range in any plan, or a direct read.")
      .def_prop_ro("engine_lives", &Client::engine_lives, "Whether the engine is still there.")
      .def_prop_ro("is_ours", &Client::is_ours, "False in a forked child.")
      .def("counters", &counters, nb::sig("def counters(self) -> dict[str, int]"),
           "What was counted so far, by name.");
}

}  // namespace prisma
