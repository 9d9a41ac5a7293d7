# prisma-rawread: the fastest plain parallel reader we can write, the limit that benchmarks divide by.
include_guard(GLOBAL)

file(GLOB prisma_rawread_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/benchmarks/rawread/*.cpp")
if(prisma_rawread_sources)
  add_executable(prisma-rawread ${prisma_rawread_sources})
  target_include_directories(prisma-rawread PRIVATE "${PROJECT_SOURCE_DIR}/cpp")
  target_link_libraries(prisma-rawread PRIVATE prisma_core)
  prisma_compile(prisma-rawread)
endif()
