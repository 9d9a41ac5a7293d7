// One function per file of bindings.
#pragma once

#include <nanobind/nanobind.h>

namespace prisma {

void bind_wire(nanobind::module_& m);
void bind_engine(nanobind::module_& m);
void bind_client(nanobind::module_& m);

}  // namespace prisma
