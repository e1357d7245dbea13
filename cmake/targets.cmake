# The few ways to make a target. Each compiles against src/, so that code includes
# "core/pool/pool.hpp"; tests and benchmarks may also include "support/..." from tests/.

# Headers of others that nearly every file of a kind includes are read once, not by each file: of a file of the
# plugin that is most of its time. Files include what they need all the same; the preset lint, which does
# without, sees to that. A compiler cache does more, and knows nothing of such files.
set(COOP_STANDARD_HEADERS <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <unordered_map> <utility> <vector>)
if("${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# coop_library(NAME <target> [SOURCES <file>...] [LIBS <target>...])
# A static library; header-only when it has no sources.
function(coop_library)
  cmake_parse_arguments(PARSE_ARGV 0 LIB "" "NAME" "SOURCES;LIBS")
  if(LIB_SOURCES)
    add_library(${LIB_NAME} STATIC ${LIB_SOURCES})
    target_precompile_headers(${LIB_NAME} PRIVATE ${COOP_STANDARD_HEADERS})
    set(visibility PUBLIC)
  else()
    add_library(${LIB_NAME} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(${LIB_NAME} ${visibility} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${LIB_NAME} ${visibility} ${LIB_LIBS})
endfunction()

# coop_plugin(NAME <target> SOURCES <file>... [LIBS <target>...])
# A library that PyTorch loads (torch.ops.load_library): nothing of Python's ABI is in it. PyTorch's own
# libraries are in the process already when it is loaded; it does not say where they lie.
# OBJECTS: what it is made of is compiled once for several such libraries, which name it in their LIBS.
function(coop_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 PLUGIN "OBJECTS" "NAME" "SOURCES;LIBS")
  if(PLUGIN_OBJECTS)
    add_library(${PLUGIN_NAME} OBJECT ${PLUGIN_SOURCES})
  else()
    add_library(${PLUGIN_NAME} MODULE ${PLUGIN_SOURCES})
    set_target_properties(${PLUGIN_NAME} PROPERTIES SKIP_BUILD_RPATH ON)
  endif()
  target_include_directories(${PLUGIN_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${PLUGIN_NAME} PRIVATE ${PLUGIN_LIBS} coop_torch)
endfunction()

# coop_program(NAME <target> SOURCES <file>... [LIBS <target>...])
# A command for people, at the top of the build's folder where they find it.
function(coop_program)
  cmake_parse_arguments(PARSE_ARGV 0 PROGRAM "" "NAME" "SOURCES;LIBS")
  find_package(Threads REQUIRED)
  add_executable(${PROGRAM_NAME} ${PROGRAM_SOURCES})
  target_link_libraries(${PROGRAM_NAME} PRIVATE ${PROGRAM_LIBS} CLI11::CLI11 Threads::Threads)
  target_compile_definitions(${PROGRAM_NAME} PRIVATE "COOP_VERSION=\"${PROJECT_VERSION}\"")
  target_precompile_headers(${PROGRAM_NAME} PRIVATE ${COOP_STANDARD_HEADERS})
  set_target_properties(${PROGRAM_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

# coop_test(NAME <target> LABEL <label> SOURCES <file>... [LIBS <target>...] [OWN_MAIN])
# A GoogleTest program, each case of it a test of ctest named <target>/<Suite>.<Case>.
# Labels: unit, conformance, property, golden, threads (with several), torch, gpu. The target <label>-tests
# builds all with one label. OWN_MAIN: the sources bring a main().
function(coop_test)
  cmake_parse_arguments(PARSE_ARGV 0 TEST "OWN_MAIN" "NAME;LABEL" "SOURCES;LIBS")
  set(labels unit conformance property golden threads torch gpu)
  if(NOT TEST_LABEL IN_LIST labels)
    message(FATAL_ERROR "coop_test ${TEST_NAME}: LABEL '${TEST_LABEL}' is none of ${labels}")
  endif()
  add_executable(${TEST_NAME} ${TEST_SOURCES})
  target_include_directories(${TEST_NAME} PRIVATE
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${TEST_NAME} PRIVATE ${TEST_LIBS} GTest::gtest)
  # What is tested is as it will be; the tests themselves need not be fast, and are so a third faster to build.
  target_compile_options(${TEST_NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NOT TEST_OWN_MAIN)
    target_link_libraries(${TEST_NAME} PRIVATE GTest::gtest_main)
  endif()
  get_property(first_test GLOBAL PROPERTY COOP_FIRST_TEST)  # all tests share what it precompiles
  if(first_test)
    target_precompile_headers(${TEST_NAME} REUSE_FROM ${first_test})
  else()
    target_precompile_headers(${TEST_NAME} PRIVATE ${COOP_STANDARD_HEADERS} <gtest/gtest.h>)
    set_property(GLOBAL PROPERTY COOP_FIRST_TEST ${TEST_NAME})
  endif()
  if(NOT TARGET ${TEST_LABEL}-tests)
    add_custom_target(${TEST_LABEL}-tests)
  endif()
  add_dependencies(${TEST_LABEL}-tests ${TEST_NAME})
  # Cases are listed when ctest runs, not while building: a program that dies under a sanitizer
  # is then a failed test, not a failed build.
  gtest_discover_tests(${TEST_NAME}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${TEST_NAME}/"
    PROPERTIES LABELS ${TEST_LABEL})
endfunction()
include(GoogleTest)

# coop_benchmark(NAME <target> SOURCES <file>... [LIBS <target>...] [OWN_MAIN])
function(coop_benchmark)
  cmake_parse_arguments(PARSE_ARGV 0 BENCH "OWN_MAIN" "NAME" "SOURCES;LIBS")
  add_executable(${BENCH_NAME} ${BENCH_SOURCES})
  target_include_directories(${BENCH_NAME} PRIVATE
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${BENCH_NAME} PRIVATE ${BENCH_LIBS} benchmark::benchmark)
  if(NOT BENCH_OWN_MAIN)
    target_link_libraries(${BENCH_NAME} PRIVATE benchmark::benchmark_main)
  endif()
endfunction()

# Every build checks that each folder of src/ includes only what layers.cmake allows it.
function(coop_enforce_layers)
  set(src "${PROJECT_SOURCE_DIR}/src")
  set(checker "${PROJECT_SOURCE_DIR}/cmake/layers.cmake")
  set(stamp "${PROJECT_BINARY_DIR}/layers.stamp")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${src}/*")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND "${CMAKE_COMMAND}" -D "SOURCE_DIR=${src}" -D PREFIX=src/ -P "${checker}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS "${checker}" ${files}
    COMMENT "Checking the layers of src/"
    VERBATIM)
  add_custom_target(coop-layers ALL DEPENDS "${stamp}")
endfunction()
