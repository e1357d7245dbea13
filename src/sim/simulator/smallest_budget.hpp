#pragma once

#include <optional>

#include "sim/simulator/simulator.hpp"

namespace coop::sim {

// Found by trying. What fits is not monotone in the budget: a smaller one may fit by luck, which is why
// this is called the smallest that was found to work, and no more.
struct SmallestBudget {
  Bytes bytes = 0;                   // works
  Bytes too_small = 0;               // does not, and is less by `resolution` at most
  Bytes resolution = 0;              // a thousandth of the peak
  std::optional<FailedAt> tightest;  // what was in the way with `too_small`
};

// Halves the interval in which it lies; runs about a dozen simulations. `options.budget` is not looked at.
// Nothing if not even several times the peak is enough. Throws as simulate() does.
std::optional<SmallestBudget> find_smallest_budget(const Trace& trace, SimulationOptions options);

}  // namespace coop::sim
