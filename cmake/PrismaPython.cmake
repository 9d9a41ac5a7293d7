# prismaio._core, and the programs that travel beside it in the wheel.
include_guard(GLOBAL)

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB prisma_binding_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bindings/*.cpp")
nanobind_add_module(_core NB_STATIC NOMINSIZE ${prisma_binding_sources})
target_include_directories(_core PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(_core PRIVATE prisma_core)
prisma_compile(_core)
install(TARGETS _core LIBRARY DESTINATION prismaio)

if(TARGET prisma-slowfs)
  install(TARGETS prisma-slowfs RUNTIME DESTINATION prismaio/testing/bin)
  if(SKBUILD_STATE STREQUAL "editable")
    # Python files of an editable install stay in the checkout; what they look for beside them too.
    install(TARGETS prisma-slowfs
            RUNTIME DESTINATION "${PROJECT_SOURCE_DIR}/python/prismaio/testing/bin")
  endif()
endif()
