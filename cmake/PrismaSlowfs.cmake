# prisma-slowfs: the slow pass-through file system of prismaio.testing. It needs libfuse 3 and is
# left out where that is missing: prismaio.testing then says so when it is used.
include_guard(GLOBAL)

file(GLOB prisma_slowfs_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cpp/slowfs/*.cpp")
list(FILTER prisma_slowfs_sources EXCLUDE REGEX "_test\\.cpp$")
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(FUSE3 QUIET IMPORTED_TARGET fuse3)
endif()

if(FUSE3_FOUND AND prisma_slowfs_sources)
  add_executable(prisma-slowfs ${prisma_slowfs_sources})
  target_include_directories(prisma-slowfs PRIVATE "${PROJECT_SOURCE_DIR}/cpp")
  target_link_libraries(prisma-slowfs PRIVATE prisma_core PkgConfig::FUSE3)
  prisma_compile(prisma-slowfs)
endif()
