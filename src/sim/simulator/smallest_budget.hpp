#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "sim/simulator/simulator.hpp"

namespace coop::sim {

// A budget works if the trace comes to its end with it, and no step recomputes for more than this many
// times its own time. Close to the smallest budget a step takes a hundred times as long or does not end, as
// chance will have it: nobody wants such a budget, and to simulate it takes minutes.
inline constexpr double kMostRecomputing = 10;

// Found by trying. What fits is not monotone in the budget: a smaller one may fit by luck, which is why
// this is called the smallest that was found to work, and no more.
struct SmallestBudget {
  Bytes bytes = 0;                   // works
  Bytes too_small = 0;               // does not, and is less by `resolution` at most
  Bytes resolution = 0;              // a thousandth of the peak
  std::optional<FailedAt> tightest;  // what was in the way with `too_small`
  bool is_time_bound = false;        // budgets were too small only because they take too long
  bool is_final = true;              // false: it was stopped, and may lie anywhere between the two
};

// Told of every trial before it begins: its budget, what is known by then (`bytes` 0: none that works), how
// many trials there were and about how many are to come, this one included.
struct Trial {
  Bytes budget = 0;
  const SmallestBudget& known;
  std::size_t before = 0;
  std::size_t to_come = 0;
};
using OnTrial = std::function<void(const Trial&)>;

// Halves the interval in which it lies; runs about a dozen simulations. `options.budget` is not looked at.
// Nothing if not even several times the peak is enough. If `options.stop` is set on the way, it is what is
// known by then, with `bytes` 0 if none is known to work. Throws as simulate() does.
std::optional<SmallestBudget> find_smallest_budget(const Trace& trace, SimulationOptions options,
                                                   const OnTrial& on_trial = {});

}  // namespace coop::sim
