#pragma once

// Whether a simulation decides as the engine did that a trace was recorded with: which storages are evicted,
// which calls are run again, in which order.

#include <optional>
#include <string>
#include <vector>

#include "sim/trace/trace.hpp"

namespace coop::sim {

struct ComparedDecisions {
  std::vector<TraceEvent> recorded;  // kEvicted and kAgain
  std::vector<TraceEvent> simulated;
  // The first that is another one, or is missing in one of them.
  std::optional<std::size_t> differs_at;
  std::string out_of_memory;  // why the simulation ended early, if it did

  [[nodiscard]] std::size_t count(EventKind kind) const;  // of those recorded
};

// Runs the trace with what it was recorded with. Throws InvalidArgument for a trace without decisions.
ComparedDecisions compare_decisions(const Trace& trace);

// "evicts storage 5", or "runs call 3 again: aten::relu".
std::string describe(const Trace& trace, const TraceEvent& decision);

}  // namespace coop::sim
