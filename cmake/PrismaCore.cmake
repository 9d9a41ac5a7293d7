# prisma_core: every room of cpp/prisma but the plug-ins (which are libraries of their own), without
# its tests. It knows no Python.
include_guard(GLOBAL)

file(GLOB prisma_core_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cpp/prisma/*/*.cpp")
list(FILTER prisma_core_sources EXCLUDE REGEX "(_test\\.cpp$|/cpp/prisma/plugins/)")

if(NOT prisma_core_sources)  # a library needs a source file, even before the first room has one
  set(prisma_core_sources "${PROJECT_BINARY_DIR}/no_rooms_yet.cpp")
  file(WRITE "${prisma_core_sources}" "")
endif()

add_library(prisma_core STATIC ${prisma_core_sources})
target_include_directories(prisma_core PUBLIC "${PROJECT_SOURCE_DIR}/cpp")
target_link_libraries(prisma_core PUBLIC Threads::Threads)
prisma_compile(prisma_core)
