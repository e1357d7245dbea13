# How every file of the project is compiled. Directory-wide on purpose: a target cannot forget it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the core ends up inside a Python extension module
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# PyTorch finds the plugin by what it registers, not by its symbols. What is visible from outside could be replaced from
# there: the compiler would inline none of it, and every call would go through a table.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Warnings. What a designated initializer leaves out has its default, which is not worth one.
add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wcast-align
  -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough -Wformat=2 -Wextra-semi -Wundef
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wduplicated-cond -Wduplicated-branches -Wlogical-op)
endif()
if(CMAKE_UNITY_BUILD)
  add_compile_options(-Wno-shadow)  # what another file of the same unit has at its top is no mistake
endif()
if(COOP_WERROR)
  add_compile_options(-Werror)
endif()

# Invariant checks. COOP_CHECK_LEVEL alone decides about ours; NDEBUG does not.
set(levels off cheap full)
list(FIND levels "${COOP_CHECKS}" level)
if(level EQUAL -1)
  message(FATAL_ERROR "COOP_CHECKS is '${COOP_CHECKS}'; it must be off, cheap or full")
endif()
add_compile_definitions(COOP_CHECK_LEVEL=${level})
if(COOP_CHECKS STREQUAL "full")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)  # the standard library's own cheap checks as well
endif()

# Sanitizers. The first finding ends the program, so that no test passes over one.
if(COOP_SANITIZE)
  add_compile_options(-fsanitize=${COOP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COOP_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's flow analysis sees paths that only the instrumentation added.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# Fuzzing: everything tells libFuzzer which code it reaches.
if(COOP_BUILD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "COOP_BUILD_FUZZ needs clang, which has libFuzzer")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# clang-tidy beside the compiler: parallel, and only for files that changed. The hash of its
# settings is part of the command line, so that a change of the rules checks every file again.
#
# Most of its checks read the headers of the standard library again with every file, which is most of their
# time: those look at units of many files. The rest must see files as they are: what follows paths through
# functions, what follows exceptions, and what is unused in a file.
if(COOP_TIDY)
  set(of_files "clang-analyzer-*,bugprone-exception-escape,misc-unused-using-decls,misc-unused-alias-decls")
  if(COOP_TIDY STREQUAL "files")
    # The analyzer's own exceptions, from .clang-tidy.
    set(checks "-*,clang-diagnostic-*,${of_files}")
    string(APPEND checks ",-clang-analyzer-deadcode.DeadStores,-clang-analyzer-optin.performance.Padding")
  elseif(COOP_TIDY STREQUAL "units")
    string(REPLACE "," ",-" checks "-${of_files},bugprone-suspicious-include")
  else()
    message(FATAL_ERROR "COOP_TIDY is '${COOP_TIDY}'; it must be empty, files or units")
  endif()
  find_program(COOP_CLANG_TIDY NAMES clang-tidy REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY "${COOP_CLANG_TIDY}" --quiet "--checks=${checks}")
  set(rules "${PROJECT_SOURCE_DIR}/.clang-tidy")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${rules}")
  file(SHA1 "${rules}" hash)
  add_compile_definitions(COOP_TIDY_RULES_${hash})
endif()
