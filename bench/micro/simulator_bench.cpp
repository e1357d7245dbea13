// A whole simulation, by the call: the budget does not bind, so this is what recording costs.
#include <benchmark/benchmark.h>

#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

void simulate_calls(benchmark::State& state, const char* network) {
  const Trace trace = generate(network, {.seed = 1, .steps = 10});
  const Bytes budget = 2 * measure_demand(trace).peak_bytes;
  for (auto _ : state) {
    if (!simulate(trace, {.budget = budget}).is_ok()) state.SkipWithError("does not fit");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.call_count()));
}
BENCHMARK_CAPTURE(simulate_calls, chain, "chain");
BENCHMARK_CAPTURE(simulate_calls, residual, "residual");
BENCHMARK_CAPTURE(simulate_calls, transformer, "transformer");
BENCHMARK_CAPTURE(simulate_calls, lstm, "lstm");

void read_calls(benchmark::State& state) {
  const Trace trace = generate("residual", {.seed = 1, .steps = 10});
  const std::string text = format_trace(trace);
  for (auto _ : state) benchmark::DoNotOptimize(parse_trace(text, "bench"));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.call_count()));
}
BENCHMARK(read_calls);

}  // namespace
}  // namespace coop::sim
