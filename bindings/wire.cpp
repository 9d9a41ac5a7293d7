#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "gil.h"
#include "prisma/wire/socket.h"
#include "rooms.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace prisma {
namespace {

/// A descriptor that its caller closes, or the OSError why there is none.
template <typename Open>
int opened(const std::string& address, Open open) {
  try {
    const NoGil no_gil;
    return open(address).release();
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, address.c_str());
    throw nb::python_error();
  }
}

}  // namespace

void bind_wire(nb::module_& m) {
  m.def(
      "listen_at", [](const std::string& address) { return opened(address, wire::listen_at); },
      "address"_a, "A listening socket's descriptor. Raises OSError where the address is taken.");
  m.def(
      "connect_to", [](const std::string& address) { return opened(address, wire::connect_to); },
      "address"_a, "A connection's descriptor. Raises OSError when nobody of this user answers.");
}

}  // namespace prisma
