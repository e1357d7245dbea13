// What must hold of every simulation, on generated and on recorded networks.
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/check.hpp"
#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/dtr_log.hpp"
#include "support/recorded_logs.hpp"

namespace coop::sim {
namespace {

// Full checks look at the whole pool after every change.
constexpr std::uint64_t kLayers = kFullChecks ? 4 : 12;

Bytes part_of(Bytes bytes, double ratio) {
  return static_cast<Bytes>(static_cast<double>(bytes) * ratio);
}

std::vector<PolicyTraits> policies_and_ablations() {
  std::vector<PolicyTraits> all = known_policies();
  for (const PolicyTraits& ablation : known_ablations()) all.push_back(ablation);
  return all;
}

// All but what the real clock says.
void expect_same(const SimulationResult& a, const SimulationResult& b) {
  EXPECT_EQ(a.most_held_bytes, b.most_held_bytes);
  EXPECT_EQ(a.is_ok(), b.is_ok());
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].total_ns(), b.steps[i].total_ns());
    EXPECT_EQ(a.steps[i].evictions, b.steps[i].evictions);
    EXPECT_EQ(a.steps[i].evicted_bytes, b.steps[i].evicted_bytes);
    EXPECT_EQ(a.steps[i].searches, b.steps[i].searches);
    EXPECT_EQ(a.steps[i].fragmentation, b.steps[i].fragmentation);
  }
}

TEST(EverySimulation, StaysWithinItsBudgetAndAddsUp) {
  std::uint64_t completed = 0;
  std::uint64_t evictions = 0;
  for (const Generator& generator : known_generators()) {
    const Trace trace = generator.generate({.seed = 5, .steps = 2, .layers = kLayers});
    const Demand demand = measure_demand(trace);
    for (const PolicyTraits& policy : policies_and_ablations()) {
      for (const double ratio : {1.0, 0.7, 0.5}) {
        SCOPED_TRACE(std::string(generator.name) + " under " + std::string(policy.name) + " at " +
                     std::to_string(ratio));
        const Bytes budget = part_of(demand.peak_bytes, ratio);
        const SimulationResult result =
            simulate(trace, {.policy = std::string(policy.name), .budget = budget});
        EXPECT_LE(result.most_held_bytes, budget);
        if (!result.is_ok()) continue;
        ++completed;
        ASSERT_EQ(result.steps.size(), 2U);
        const double base_ns = result.steps[0].base_ns + result.steps[1].base_ns;
        EXPECT_NEAR(base_ns, demand.base_ns, 1e-9 * demand.base_ns);
        for (const StepResult& step : result.steps) {
          evictions += step.evictions;
          EXPECT_GE(step.fragmentation, 0);
          EXPECT_LT(step.fragmentation, 1);
          EXPECT_EQ(step.recomputed_calls == 0, step.recomputed_ns == 0);
        }
      }
    }
  }
  // So that the test tests something.
  EXPECT_GT(completed, 80U);
  EXPECT_GT(evictions, 1000U);
}

TEST(EverySimulation, NeedsNothingMoreWhereThereIsRoom) {
  for (const Generator& generator : known_generators()) {
    SCOPED_TRACE(generator.name);
    const Trace trace = generator.generate({.seed = 2, .layers = kLayers});
    const Bytes budget = 3 * measure_demand(trace).peak_bytes;
    const SimulationResult result = simulate(trace, {.budget = budget, .steps = 7});
    ASSERT_TRUE(result.is_ok());
    ASSERT_EQ(result.steps.size(), 7U);
    for (const StepResult& step : result.steps) {
      EXPECT_EQ(step.evictions, 0U);
      EXPECT_EQ(step.recomputed_ns, 0);
    }
  }
}

TEST(EverySimulation, IsTheSameEveryTimeAndInEveryThread) {
  const Trace trace = generate("residual", {.seed = 1, .layers = kLayers});
  const Bytes budget = part_of(measure_demand(trace).peak_bytes, 0.7);
  for (const PolicyTraits& policy : policies_and_ablations()) {
    SCOPED_TRACE(policy.name);
    const SimulationOptions options{.policy = std::string(policy.name), .budget = budget};
    const SimulationResult first = simulate(trace, options);
    std::vector<std::future<SimulationResult>> others;
    for (int i = 0; i < 3; ++i) {
      others.push_back(std::async(std::launch::async, [&] { return simulate(trace, options); }));
    }
    for (auto& other : others) expect_same(first, other.get());
  }
}

TEST(EverySimulation, CompletesOnRecordedNetworks) {
  for (const char* name : {"resnet50", "spos"}) {
    SCOPED_TRACE(name);
    const Trace trace = read_dtr_log(testing::h200_log(name), Mutation::kInPlace);
    const Bytes budget = part_of(measure_demand(trace).peak_bytes, 0.6);
    const SimulationResult result = simulate(trace, {.budget = budget, .steps = 3});
    ASSERT_TRUE(result.is_ok()) << result.failure->why;
    EXPECT_GT(result.last().overhead(), 0.0);
    EXPECT_LT(result.last().overhead(), 0.5);
    EXPECT_LT(result.last().fragmentation, 0.1);
  }
}

}  // namespace
}  // namespace coop::sim
