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
  Bytes parameters = 0;  // as far as gradients have been made for them
  Bytes gradients = 0;
  Bytes enough_budget = 0;  // would have served the request, were all else the same; 0: not known
};

// Lightning and accelerate know out-of-memory errors by their words, and these for the CPU's: everyone of ours
// has them, so that a batch size is found as it is without coop.
inline constexpr const char* kWordsOfPyTorch = "DefaultCPUAllocator: can't allocate memory";

// None if there was none.
std::optional<LastOutOfMemory> last_out_of_memory();

}  // namespace coop::plugin
