# The layers of src/, from the bottom up, and the check that the includes keep to them.
#
#   cmake -D SOURCE_DIR=<path of src> [-D PREFIX=<written before file names>] -P layers.cmake
#
# Each line: a layer, then the layers it may include beside itself. A file belongs to the layer
# whose folder it lies in, at any depth; of two such layers the later one. To add a layer, add a line.

set(LAYERS
  "core/base    :"
  "core/pool    : core/base"
  "core/cost    : core/base"
  "core/policy  : core/base core/pool core/cost"
  "core/lineage : core/base core/pool core/cost"
  "core/plan    : core/base"
  "core/forecast: core/base core/plan"
  "core/engine  : core/base core/pool core/cost core/policy core/lineage core/plan core/forecast"
  "sim          : sim/trace core/base core/pool core/cost core/policy core/lineage core/plan core/forecast core/engine"
  "sim/trace    : core/base core/pool core/cost core/policy core/lineage core/engine"
  "plugin       : core/base core/pool core/cost core/policy core/lineage core/engine sim/trace"
  "cli          : core/base core/pool core/cost core/policy core/lineage core/engine sim sim/trace plugin")

# What core must never include: it knows no PyTorch, no CUDA, no JSON, no command line.
set(FOREIGN_TO_CORE "^(torch/|ATen/|c10/|cuda|simdjson|CLI/|nlohmann)")

cmake_minimum_required(VERSION 3.25)

set(layers "")
set(roots "")  # first folders, core, sim, ...: an include that begins with one is ours
foreach(line IN LISTS LAYERS)
  string(REGEX MATCH "^([^ :]+) *:(.*)$" line "${line}")
  set(layer "${CMAKE_MATCH_1}")
  string(REGEX MATCHALL "[^ ]+" allowed_${layer} "${CMAKE_MATCH_2}")
  list(APPEND layers "${layer}")
  string(REGEX REPLACE "/.*" "" root "${layer}")
  list(APPEND roots "${root}")
endforeach()

# The layer that `path` (relative to src/) lies in, or "".
function(layer_of path out)
  set(${out} "" PARENT_SCOPE)
  foreach(layer IN LISTS layers)
    string(FIND "${path}" "${layer}/" at)
    if(at EQUAL 0)
      set(${out} "${layer}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Why `file` may not include `target`, or "".
function(fault_of file target quoted out)
  layer_of("${file}" layer)
  layer_of("${target}" target_layer)
  string(REGEX REPLACE "/.*" "" root "${target}")
  set(may_include "${layer}" ${allowed_${layer}})
  list(JOIN may_include ", " may_include)

  set(fault "")
  if(target_layer)
    if(NOT target_layer STREQUAL layer AND NOT target_layer IN_LIST allowed_${layer})
      set(fault "${layer} must not know ${target_layer}; it may include: ${may_include}")
    endif()
  elseif(quoted)
    set(fault "not in any layer; project files are included by their path from src/, others with <>")
  elseif(root IN_LIST roots AND target MATCHES "/")
    set(fault "not in any layer")
  elseif(layer MATCHES "^core/" AND target MATCHES "${FOREIGN_TO_CORE}")
    set(fault "core knows no PyTorch, CUDA, JSON or command line")
  endif()
  set(${out} "${fault}" PARENT_SCOPE)
endfunction()

function(line_number file text out)
  file(READ "${file}" content)
  string(FIND "${content}" "${text}" at)
  string(SUBSTRING "${content}" 0 ${at} before)
  string(REGEX MATCHALL "\n" newlines "${before}")
  list(LENGTH newlines count)
  math(EXPR count "${count} + 1")
  set(${out} "${count}" PARENT_SCOPE)
endfunction()

set(faults "")
file(GLOB_RECURSE files RELATIVE "${SOURCE_DIR}"
  "${SOURCE_DIR}/*.hpp" "${SOURCE_DIR}/*.cpp" "${SOURCE_DIR}/*.h" "${SOURCE_DIR}/*.inc"
  "${SOURCE_DIR}/*.cu" "${SOURCE_DIR}/*.cuh")
if(NOT files)
  message(FATAL_ERROR "Layering: no source files below '${SOURCE_DIR}'")
endif()

set(directive "^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]")
foreach(file IN LISTS files)
  layer_of("${file}" layer)
  if(NOT layer)
    string(APPEND faults "\n  ${PREFIX}${file}: lies in no layer")
    continue()
  endif()
  file(STRINGS "${SOURCE_DIR}/${file}" lines REGEX "${directive}" ENCODING UTF-8)
  string(REGEX REPLACE "[][]" " " lines "${lines}")  # brackets in comments would glue list items
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "${directive}")
      continue()  # the rest of a line with a semicolon
    endif()
    set(text "${CMAKE_MATCH_0}")
    set(target "${CMAKE_MATCH_2}")
    string(COMPARE EQUAL "${CMAKE_MATCH_1}" "\"" quoted)
    fault_of("${file}" "${target}" ${quoted} fault)
    if(fault)
      line_number("${SOURCE_DIR}/${file}" "${text}" number)
      string(APPEND faults "\n  ${PREFIX}${file}:${number}: includes ${target}: ${fault}")
    endif()
  endforeach()
endforeach()

if(faults)
  message(FATAL_ERROR "The layering is broken (the rules are at the top of cmake/layers.cmake):${faults}\n")
endif()
