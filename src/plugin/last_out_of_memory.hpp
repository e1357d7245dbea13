#pragma once

// The last request of the program's that could not be served, and what its error says.

#include <optional>
#include <string>
#include <string_view>

#include "core/engine/out_of_memory.hpp"

namespace coop::plugin {

// Who else holds memory, besides the holders in the pool.
inline constexpr std::string_view kInEarlierPools = "of tensors that outlived an earlier budget";

struct LastOutOfMemory {
  MemoryReport report;
  std::string op;           // that ran; empty: none
  Bytes budget = 0;         // the pool, and what earlier pools hold
  Bytes enough_budget = 0;  // would have served the request, were all else the same; 0: not known
};

// None if there was none.
std::optional<LastOutOfMemory> last_out_of_memory();

}  // namespace coop::plugin
