# What benchmarks are made of:
#   prisma-rawread  the fastest plain parallel reader we can write, the limit that they divide by
#   prisma_touch    a Python module that reads one byte of every page of a buffer
#   prisma-takes    times takes of ready samples in C++
include_guard(GLOBAL)

set(prisma_bench_native "${PROJECT_SOURCE_DIR}/benchmarks/native")

add_executable(prisma-rawread "${prisma_bench_native}/rawread.cpp")
prisma_compile(prisma-rawread)

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
Python_add_library(prisma_touch MODULE WITH_SOABI "${prisma_bench_native}/touch.cpp")
prisma_compile(prisma_touch)

add_executable(prisma-takes "${prisma_bench_native}/takes.cpp")
target_link_libraries(prisma-takes PRIVATE prisma_core)
prisma_compile(prisma-takes)
