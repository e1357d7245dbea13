#pragma once

#include <cstdint>

#include "core/lineage/graph.hpp"

namespace coop {

struct Missing {
  // Nanoseconds of Calls around a Value whose results are not there: those that would have to run before it can be
  // made again, and those whose results somebody may still read and that cannot run without it.
  double cost = 0;
  // The most that one of the Calls which make it again reads and makes, Sources aside: with less room it cannot
  // come back, whatever else goes.
  Bytes widest = 0;
};

// Looks no farther than some hundred Values. `walk` is a number that no other walk has.
[[nodiscard]] Missing missing_around(Graph& graph, const Value& value, std::uint64_t walk) noexcept;

}  // namespace coop
