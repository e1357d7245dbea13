# Writes small source trees and checks what cmake/layers.cmake says about each.
cmake_minimum_required(VERSION 3.25)

set(failures 0)

# verdict(<case> <file> <its text> <"passes", or a regular expression for the complaint>)
# The tree is one sound file plus the given one.
function(verdict case file text expected)
  set(tree "${SCRATCH}/${case}")
  file(REMOVE_RECURSE "${tree}")
  file(WRITE "${tree}/core/base/ids.hpp" "#pragma once\n#include <vector>\n")
  file(WRITE "${tree}/${file}" "${text}")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "SOURCE_DIR=${tree}" -D PREFIX=src/ -P "${CHECKER}"
    RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")  # CMake wraps long messages

  set(ok FALSE)
  if(expected STREQUAL "passes" AND code EQUAL 0)
    set(ok TRUE)
  elseif(NOT code EQUAL 0 AND said MATCHES "${expected}")
    set(ok TRUE)
  endif()
  if(ok)
    message(STATUS "ok: ${case}")
  else()
    message(STATUS "FAILED: ${case}\n  expected: ${expected}\n  exit ${code}, said: ${said}")
    math(EXPR failures "${failures} + 1")
    set(failures ${failures} PARENT_SCOPE)
  endif()
endfunction()

verdict(itself core/base/units.hpp "#include \"core/base/ids.hpp\"\n" passes)
verdict(below core/pool/pool.hpp "#include <map>\n#include \"core/base/ids.hpp\"\n" passes)
verdict(deeper_folder core/pool/detail/x.cpp "#include \"core/pool/pool.hpp\"\n" passes)
verdict(plugin_knows_torch plugin/storage.cpp "#include <torch/library.h>\n#include <c10/core/Storage.h>\n" passes)
verdict(cli_knows_sim cli/main.cpp "#include \"sim/simulator.hpp\"\n#include <CLI/CLI.hpp>\n" passes)
verdict(comment core/base/a.cpp "// #include \"core/engine/engine.hpp\"\n" passes)
verdict(remark core/base/a.cpp "#include \"core/base/ids.hpp\"  // [ids; and more]\n#include <map>\n" passes)

verdict(above core/pool/pool.cpp "#include \"core/base/ids.hpp\"\n\n#include \"core/engine/engine.hpp\"\n"
  "src/core/pool/pool.cpp:3: includes core/engine/engine.hpp: core/pool must not know core/engine. it may include: core/pool, core/base")
verdict(above_after_remark core/base/a.cpp "#include <map>  // a [b; c\n#include \"core/pool/pool.hpp\"\n"
  "src/core/base/a.cpp:2: includes core/pool/pool.hpp")
verdict(spaced core/base/a.hpp "  #  include\t\"core/pool/pool.hpp\"\n" "core/base must not know core/pool")
verdict(angled core/base/a.hpp "#include <core/pool/pool.hpp>\n" "core/base must not know core/pool")
verdict(core_sim core/engine/a.cpp "#include \"sim/trace.hpp\"\n" "core/engine must not know sim")
verdict(pool_cost core/pool/a.cpp "#include \"core/cost/cost.hpp\"\n" "core/pool must not know core/cost")
verdict(cost_pool core/cost/a.cpp "#include \"core/pool/pool.hpp\"\n" "core/cost must not know core/pool")
verdict(lineage_policy core/lineage/a.cpp "#include \"core/policy/coop.hpp\"\n" "core/lineage must not know core/policy")
verdict(policy_lineage core/policy/a.cpp "#include \"core/lineage/call.hpp\"\n" "core/policy must not know core/lineage")
verdict(plugin_sim plugin/a.cpp "#include \"sim/simulator/a.hpp\"\n" "plugin must not know sim")
verdict(plugin_trace plugin/a.cpp "#include \"sim/trace/trace.hpp\"\n" passes)
verdict(trace_simulator sim/trace/a.cpp "#include \"sim/simulator/a.hpp\"\n" "sim/trace must not know sim")
verdict(sim_cli sim/a.cpp "#include \"cli/main.hpp\"\n" "sim must not know cli")

foreach(foreign torch/torch.h ATen/ATen.h c10/core/Device.h cuda.h cuda_runtime.h simdjson.h CLI/CLI.hpp nlohmann/json.hpp)
  string(MAKE_C_IDENTIFIER "foreign_${foreign}" case)
  verdict(${case} core/engine/a.cpp "#include <${foreign}>\n" "core knows no PyTorch")
endforeach()

verdict(unknown_folder core/base/a.cpp "#include \"util/x.hpp\"\n" "includes util/x.hpp: not in any layer")
verdict(no_folder core/base/a.cpp "#include \"ids.hpp\"\n" "includes ids.hpp: not in any layer")
verdict(upward_path core/base/a.cpp "#include \"../pool/pool.hpp\"\n" "includes ../pool/pool.hpp: not in any layer")
verdict(unknown_core_folder core/base/a.cpp "#include <core/util/x.hpp>\n" "includes core/util/x.hpp: not in any layer")
verdict(file_outside_layers util/x.hpp "#pragma once\n" "src/util/x.hpp: lies in no layer")

if(failures)
  message(FATAL_ERROR "${failures} verdicts were wrong")
endif()
