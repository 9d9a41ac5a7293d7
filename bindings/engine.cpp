#include "prisma/engine/engine.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "gil.h"
#include "rooms.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace prisma {

void bind_engine(nb::module_& m) {
  m.def(
      "run_engine",
      [](int listen_fd, std::uint64_t memory_bytes, std::uint64_t buffer_bytes, std::uint64_t depth,
         const std::string& source) {
        // Not destroyed: a reader may hang in storage, and only the process's end ends that.
        auto* engine =
            new Engine(Fd(listen_fd), {memory_bytes, buffer_bytes, depth, source_named(source)});
        engine->run();
      },
      nb::kw_only(), "listen_fd"_a, "memory_bytes"_a, "buffer_bytes"_a, "depth"_a, "source"_a,
      nb::call_guard<NoGil>(),
      "Serves clients of a listening socket, until the last one is gone. Takes the socket over. "
      "End "
      "the process after it, at once: threads may still be reading.");
}

}  // namespace prisma
