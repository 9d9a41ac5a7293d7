# One test program per room, from the *_test.cpp beside its code, and `together_test` from cpp/tests
# for what only shows between rooms. Every test has a time limit.
include_guard(GLOBAL)

find_package(GTest REQUIRED)
include(GoogleTest)
set(PRISMA_TEST_TIMEOUT_S 120 CACHE STRING "Seconds after which one C++ test has failed")

function(prisma_add_test name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cpp")
  target_link_libraries(${name} PRIVATE prisma_core GTest::gmock GTest::gtest_main)
  prisma_compile(${name})
  # PRE_TEST: tests are listed when ctest runs, in the environment that sanitizers need.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${PRISMA_TEST_TIMEOUT_S})
endfunction()

foreach(room IN ITEMS base plan source buffer wire engine client)
  file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cpp/prisma/${room}/*_test.cpp")
  if(tests)
    prisma_add_test(${room}_test ${tests})
  endif()
endforeach()

file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cpp/tests/*.cpp")
if(tests)
  prisma_add_test(together_test ${tests})
endif()
