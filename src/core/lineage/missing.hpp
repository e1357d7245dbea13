#pragma once

#include <cstdint>

#include "core/lineage/graph.hpp"

namespace coop {

// Nanoseconds of Calls around a Value whose results are not there: those that would have to run before it
// can be made again, and those whose results somebody may still read and that cannot run without it. Looks
// no farther than some hundred Values. `walk` is a number that no other walk has.
[[nodiscard]] double cost_of_missing(Graph& graph, const Value& value, std::uint64_t walk) noexcept;

}  // namespace coop
