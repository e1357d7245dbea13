// Planning a step for half of the memory it takes.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/plan/planner.hpp"
#include "core/plan/step_evaluation.hpp"
#include "support/step_builder.hpp"

namespace coop::bench {
namespace {

constexpr int kMostGrains = 2000;

// Of about so many calls.
StepRecord training_step(std::int64_t calls) {
  testing::Random random(1);
  return testing::random_training_step(random, static_cast<int>(calls * 10 / 32), kMostGrains);
}

Bytes peak_of(const StepFacts& facts) {
  StepEvaluation evaluation(facts);
  const bool is_possible =
      evaluation.run(Drops(facts.versions.size()), StepEvaluation::Detail::kMemory);
  return is_possible ? evaluation.most() : 0;
}

void plan_a_step(benchmark::State& state) {
  const StepRecord step = training_step(state.range(0));
  const PlanOptions options{.budget = peak_of(StepFacts(step, 0, 2000)) / 2};
  double overhead = 0;
  for (auto _ : state) {
    const auto plan = plan_step(step, options);
    overhead = plan ? plan->overhead_ns : -1;
    benchmark::DoNotOptimize(overhead);
  }
  double cost = 0;
  for (const StepRecord::Call& call : step.calls) cost += call.cost;
  state.counters["calls"] = static_cast<double>(step.calls.size());
  state.counters["overhead"] = overhead / cost;
}
BENCHMARK(plan_a_step)->Arg(400)->Arg(2'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

// One evaluation: what a search for drops does some twenty to fifty times.
void evaluate_a_step(benchmark::State& state, StepEvaluation::Detail detail) {
  const StepRecord step = training_step(state.range(0));
  const StepFacts facts(step, 0, 2000);
  StepEvaluation evaluation(facts);
  const Drops none(facts.versions.size());
  for (auto _ : state) {
    const bool is_possible = evaluation.run(none, detail);
    benchmark::DoNotOptimize(is_possible);
  }
  state.counters["calls"] = static_cast<double>(step.calls.size());
}
BENCHMARK_CAPTURE(evaluate_a_step, memory, StepEvaluation::Detail::kMemory)
    ->Arg(400)
    ->Arg(2'000)
    ->Arg(10'000)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(evaluate_a_step, gaps, StepEvaluation::Detail::kGaps)
    ->Arg(400)
    ->Arg(2'000)
    ->Arg(10'000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace coop::bench
