#pragma once

// The last request of the program's that could not be served, and what its error says.

#include <optional>
#include <string>

#include "core/engine/out_of_memory.hpp"

namespace coop::plugin {

struct LastOutOfMemory {
  MemoryReport report;
  std::string op;  // that ran; empty: none
  Bytes budget = 0;
  Bytes enough_budget = 0;  // would have served the request, were all else the same; 0: not known
};

// None if there was none.
std::optional<LastOutOfMemory> last_out_of_memory();

}  // namespace coop::plugin
