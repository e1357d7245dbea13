# A part whose library is not installed switches itself off and says so: the core always builds,
# with a compiler, CMake and Ninja alone.

# coop_part(<option> PACKAGE <CMake package> DEBIAN <Debian package>)
macro(coop_part option)
  cmake_parse_arguments(PART "" "PACKAGE;DEBIAN" "" ${ARGN})
  if(${option})
    find_package(${PART_PACKAGE} QUIET)
    if(NOT ${PART_PACKAGE}_FOUND)
      message(STATUS "${option} is off: ${PART_PACKAGE} was not found (Debian: ${PART_DEBIAN})")
      set(${option} OFF)  # this run only: once the package is installed, the part comes back
    endif()
  endif()
endmacro()

# The minor versions of PyTorch that torch_version.hpp names.
function(coop_supported_torch oldest newest)
  set(header "${PROJECT_SOURCE_DIR}/src/plugin/torch_version.hpp")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  foreach(end oldest newest)
    string(TOUPPER ${end} word)
    file(STRINGS "${header}" line REGEX "#define COOP_${word}_TORCH_MINOR")
    string(REGEX MATCH "[0-9]+$" minor "${line}")
    set(${${end}} "${minor}" PARENT_SCOPE)
  endforeach()
endfunction()

# Another version than those is an error, not a part less: somebody named it, or has it in .venv, and expects
# a plugin.
function(coop_require_supported_torch torch_root)
  coop_supported_torch(OLDEST NEWEST)
  file(STRINGS "${torch_root}/version.py" line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+" version "${line}")
  if(version VERSION_LESS 2.${OLDEST} OR version VERSION_GREATER 2.${NEWEST})
    math(EXPR AFTER "${NEWEST} + 1")
    set(instead "-D COOP_PYTHON=<python> names another Python, -D COOP_BUILD_PLUGIN=OFF leaves the plugin out.")
    if(SKBUILD)
      set(instead "If one of those is in another Python: pip install -C cmake.define.COOP_PYTHON=<that python> .")
    endif()
    message(FATAL_ERROR
      "  PyTorch ${version} in ${torch_root}: coop supports 2.${OLDEST} to 2.${NEWEST}: pip install 'torch>=2.${OLDEST},<2.${AFTER}'\n"
      "  ${instead}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${torch_root}/version.py")
endfunction()

# GPUs need a PyTorch with CUDA, whose wheel brings CUDA's headers and its runtime along. Sets COOP_HAS_CUDA.
function(coop_cuda_part torch_root)
  set(COOP_HAS_CUDA OFF PARENT_SCOPE)
  file(GLOB headers "${torch_root}/../nvidia/*/include/cuda_runtime_api.h")
  file(GLOB runtime "${torch_root}/../nvidia/*/lib/libcudart.so*")
  if(NOT EXISTS "${torch_root}/lib/libc10_cuda.so" OR NOT headers OR NOT runtime)
    message(STATUS "The plugin is built without CUDA: this PyTorch has none")
    return()
  endif()
  list(GET headers 0 header)
  list(GET runtime 0 library)
  cmake_path(GET header PARENT_PATH directory)
  target_include_directories(coop_torch SYSTEM INTERFACE "${directory}")
  target_link_libraries(coop_torch INTERFACE "${torch_root}/lib/libc10_cuda.so" "${library}")
  set(COOP_HAS_CUDA ON PARENT_SCOPE)
endfunction()

# The plugin needs PyTorch, as PyPI has it: headers and libraries inside a Python's site-packages, .venv's
# unless COOP_PYTHON names another. (find_package(Torch) would want a CUDA toolkit to build anything
# against a wheel with CUDA; the plugin needs none.) Makes the target coop_torch.
#
# Where a wheel is built it is the PyTorch of the Python that the wheel is for. pip hides what that one has
# behind a PYTHONPATH of its own, so the environment is not read (-E); uv and build make another Python
# altogether, and need to be told.
macro(coop_plugin_part)
  set(without_environment "")
  if(SKBUILD)
    set(without_environment -E)
    find_package(Python REQUIRED COMPONENTS Interpreter)
    if(NOT DEFINED COOP_PYTHON)  # and it is not remembered: the next wheel may be for another
      set(COOP_PYTHON "${Python_EXECUTABLE}")
    endif()
  else()
    set(COOP_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH
      "The Python whose PyTorch the plugin is built against")
  endif()
  if(COOP_BUILD_PLUGIN)
    set(torch_root "")
    if(EXISTS "${COOP_PYTHON}")
      # Looked for, not imported: that would take seconds.
      execute_process(
        COMMAND "${COOP_PYTHON}" ${without_environment} -c
          "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0], end='')"
        OUTPUT_VARIABLE torch_root ERROR_QUIET)
    endif()
    if(EXISTS "${torch_root}/include/torch/library.h")
      coop_require_supported_torch("${torch_root}")
      add_library(coop_torch INTERFACE)
      target_include_directories(coop_torch SYSTEM INTERFACE
        "${torch_root}/include" "${torch_root}/include/torch/csrc/api/include")
      target_link_libraries(coop_torch INTERFACE
        "${torch_root}/lib/libtorch_cpu.so" "${torch_root}/lib/libc10.so")
      coop_cuda_part("${torch_root}")
    elseif(SKBUILD)
      coop_supported_torch(OLDEST NEWEST)
      math(EXPR AFTER "${NEWEST} + 1")
      # Begun with blanks, so that CMake does not break lines.
      message(FATAL_ERROR
        "  coop: there is no PyTorch in ${COOP_PYTHON}: pip install 'torch>=2.${OLDEST},<2.${AFTER}', then coop\n"
        "  If it is in another Python: pip install -C cmake.define.COOP_PYTHON=<that python> .")
    else()
      message(STATUS "COOP_BUILD_PLUGIN is off: no PyTorch in ${COOP_PYTHON} (make setup)")
      set(COOP_BUILD_PLUGIN OFF)  # this run only
    endif()
  endif()
endmacro()
