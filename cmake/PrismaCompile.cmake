# How all of our own C++ is compiled: `prisma_compile(target)`.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Four wheels and a native build compile the same core: with ccache it is compiled once. The cache
# lives in the checkout, so that `make clean` really starts anew.
find_program(PRISMA_CCACHE ccache)
if(PRISMA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_DIR=${PROJECT_SOURCE_DIR}/build/ccache" "${PRISMA_CCACHE}")
endif()

if(PRISMA_SANITIZE)
  add_compile_options("-fsanitize=${PRISMA_SANITIZE}" -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${PRISMA_SANITIZE}")
endif()

function(prisma_compile target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
  target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()
