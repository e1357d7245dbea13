#pragma once

// Runs a trace through the engine on memory that is not there: what would this program cost under this
// budget, with this policy?
//
//     const Demand demand = measure_demand(trace);
//     const SimulationResult result = simulate(trace, {.budget = demand.peak_bytes / 2});
//     if (result.is_ok()) use(result.last().overhead());
//
// Time is what operators cost, as the trace has it; only the search for victims is measured, on the real
// clock. All other figures are the same on every run. A simulation shares nothing with any other: run as
// many at a time as there are cores, on the same trace.
//
// Steps. If more are asked for than the trace has, it is run again from its beginning: storages from
// outside that are still alive stay, what its calls made is released, and storages from outside that it
// released come again where they came.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/engine/out_of_memory.hpp"
#include "core/policy/policy.hpp"
#include "sim/trace/trace.hpp"

namespace coop::sim {

struct SimulationOptions {
  std::string policy = "coop";
  Bytes budget = 0;
  std::size_t steps = 0;  // 0: as many as the trace has
  // What is alive at the trace's end is what the program was run for: all of it must be there then, at
  // the same time. The step that ends the trace pays for it.
  bool brings_back_outputs = true;
  PolicyOptions policy_options;
  EngineOptions engine;
  // None: the one that the trace was recorded with, or the usual one.
  std::optional<Bytes> small_limit;
  // Every tensor gets its bytes wherever they are: the world of systems that have no addresses. Only for
  // policies that evict one tensor at a time.
  bool ignores_addresses = false;
  // A step that recomputes for more than this many times its own time ends the run, as one that does not
  // fit; 0: only what the engine calls out of memory does.
  double most_recomputing = 0;
  // The run ends, and is nothing, soon after this is set.
  const std::atomic<bool>* stop = nullptr;
};

// Definitions as in the Coop paper.
struct StepResult {
  double base_ns = 0;  // without recomputation
  double recomputed_ns = 0;
  double moving_ns = 0;     // blocks to other places for requests, by the engine's own estimate
  Bytes more_to_halve = 0;  // bytes beyond the budget: that would about halve what is recomputed
  std::uint64_t evictions = 0;
  Bytes evicted_bytes = 0;
  Bytes moved_bytes = 0;
  std::uint64_t recomputed_calls = 0;
  std::uint64_t searches = 0;   // allocations that had to evict
  std::uint64_t search_ns = 0;  // real time
  double fragmentation = 0;     // mean over searches of what is then free of the pool

  [[nodiscard]] double total_ns() const { return base_ns + recomputed_ns + moving_ns; }
  [[nodiscard]] double overhead() const {
    return base_ns > 0 ? (recomputed_ns + moving_ns) / base_ns : 0;
  }
};

// Where a trace did not fit.
struct FailedAt {
  std::size_t event = 0;  // of the trace; as many as it has: when its outputs were brought back
  std::size_t step = 0;   // from 0, counting those that were run again
  std::string op;         // empty: not a call
  std::string why;
  MemoryReport memory;
  bool is_too_slow = false;  // it had the memory: SimulationOptions::most_recomputing
};

struct SimulationResult {
  Bytes budget = 0;
  Bytes most_held_bytes = 0;      // of the budget
  std::vector<StepResult> steps;  // that were completed
  std::optional<FailedAt> failure;

  [[nodiscard]] bool is_ok() const { return !failure; }
  // The step that counts: the first ones may still be filling the memory.
  [[nodiscard]] const StepResult& last() const { return steps.back(); }
};

// SimulationOptions::stop was set.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped") {}
};

// Running out of memory is a result. Throws Stopped, and InvalidArgument for an unknown policy, for a budget that is
// no size for a pool, and for windows without addresses.
SimulationResult simulate(const Trace& trace, const SimulationOptions& options);

}  // namespace coop::sim
