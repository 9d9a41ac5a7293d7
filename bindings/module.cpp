#include <nanobind/nanobind.h>

#include "rooms.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a spawned worker may end while it still holds views
  m.doc() = "PRISMA's data plane: what Python sees of the C++ core.";
  prisma::bind_wire(m);
  prisma::bind_engine(m);
  prisma::bind_client(m);
}
