#pragma once

// What a trace takes where memory is no object: the figures that budgets and times are compared with.

#include <vector>

#include "sim/trace/trace.hpp"

namespace coop::sim {

struct Demand {
  // The most bytes that are alive at once, with the outputs and the workspace of the operator that runs.
  // Bytes as the program asked for them, not rounded to what an allocator gives out: so that they are
  // the same whoever counts, and the same as in the DTR prototype.
  Bytes peak_bytes = 0;
  std::size_t peak_event = 0;  // the first event that reaches it
  double base_ns = 0;          // what all calls cost together
};

Demand measure_demand(const Trace& trace);
// What the calls of each step cost together; first those of the preparation before it, if it has steps.
std::vector<double> measure_cost_by_step(const Trace& trace);
// For each call: the most that is alive since the one before.
std::vector<Bytes> measure_demand_by_call(const Trace& trace);

}  // namespace coop::sim
