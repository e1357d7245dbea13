#include "sim/simulator/smallest_budget.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include <gtest/gtest.h>

#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/trace/trace_builder.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

TEST(SmallestBudget, WorksAndALittleLessDoesNot) {
  const Trace trace = generate("residual", {.seed = 3, .steps = 2});
  for (const char* policy : {"coop", "dtr"}) {
    const auto found = find_smallest_budget(trace, {.policy = policy});
    ASSERT_TRUE(found.has_value()) << policy;
    SimulationOptions options{.policy = policy, .most_recomputing = kMostRecomputing};
    options.budget = found->bytes;
    EXPECT_TRUE(simulate(trace, options).is_ok()) << policy;
    options.budget = found->too_small;
    EXPECT_FALSE(simulate(trace, options).is_ok()) << policy;
    EXPECT_LE(found->bytes - found->too_small, found->resolution);
    EXPECT_LT(found->bytes, measure_demand(trace).peak_bytes) << policy;
    ASSERT_TRUE(found->tightest.has_value());
    EXPECT_EQ(found->tightest->memory.pool, found->too_small / kGrainBytes * kGrainBytes);
  }
}

// Close to the floor a step may take hundreds of times as long, and end: bilstm took minutes to be looked at.
TEST(SmallestBudget, AStepThatRecomputesForTooLongIsGivenUp) {
  const Trace trace = generate("lstm", {.seed = 3, .steps = 2});
  SimulationOptions options{.budget = measure_demand(trace).peak_bytes / 2};
  const SimulationResult whole = simulate(trace, options);
  ASSERT_TRUE(whole.is_ok());
  double most = 0;
  for (const StepResult& step : whole.steps) {
    most = std::max(most, step.recomputed_ns / step.base_ns);
  }
  ASSERT_GT(most, 0);

  options.most_recomputing = most * 1.001;
  EXPECT_TRUE(simulate(trace, options).is_ok());
  options.most_recomputing = most * 0.999;
  const SimulationResult given_up = simulate(trace, options);
  ASSERT_FALSE(given_up.is_ok());
  EXPECT_TRUE(given_up.failure->is_too_slow);
  EXPECT_LT(given_up.steps.size(), whole.steps.size());
  EXPECT_EQ(given_up.failure->memory.pool, options.budget / kGrainBytes * kGrainBytes);
}

// A mark behind the last call: what the trace was run for comes back in a stretch that has no time of its own.
TEST(SmallestBudget, AMarkAtTheEndMayBringBackWhatIsAlive) {
  const std::string text =
      "coop-trace 1\nname 1 op\nsource 0 1048576\nstep\ncall 1 0 100 reads 0 makes 1:1048576\n"
      "call 1 0 100 reads 0 makes 2:1048576\ncall 1 0 100 reads 0 makes 3:2097152\nrelease 3\n";
  for (const bool has_mark : {false, true}) {
    const Trace trace = parse_trace(text + (has_mark ? "step\nend 7\n" : "end 6\n"), "test");
    const SimulationResult result =
        simulate(trace, {.budget = 4 * 1048576, .most_recomputing = kMostRecomputing});
    ASSERT_TRUE(result.is_ok()) << result.failure->why;
  }
}

TEST(SmallestBudget, SaysWhatItTriesAndLeavesWhatIsKnownWhenItIsStopped) {
  const Trace trace = generate("residual", {.seed = 3, .steps = 2});
  const auto whole = find_smallest_budget(trace, {});
  ASSERT_TRUE(whole.has_value());
  EXPECT_TRUE(whole->is_final);
  std::size_t trials = 0;
  find_smallest_budget(trace, {}, [&](const Trial& trial) {
    EXPECT_EQ(trial.before, trials++);
    EXPECT_GT(trial.to_come, 0);
  });
  for (std::size_t last = 0; last < trials; ++last) {
    std::atomic<bool> stop = false;
    const auto known = find_smallest_budget(
        trace, {.stop = &stop}, [&](const Trial& trial) { stop = trial.before == last; });
    ASSERT_TRUE(known.has_value());
    EXPECT_FALSE(known->is_final);
    EXPECT_EQ(known->bytes == 0, last == 0);
    EXPECT_LE(known->too_small, whole->too_small);
    EXPECT_TRUE(last == 0 || known->bytes >= whole->bytes);
  }
}

TEST(SmallestBudget, OfATraceThatNeedsNothing) {
  const auto found = find_smallest_budget(TraceBuilder().finish(), {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->bytes, kGrainBytes);
  EXPECT_FALSE(found->tightest.has_value());
}

TEST(SmallestBudget, IsNoneWhereThePoolCannotBeLargeEnough) {
  TraceBuilder builder;
  builder.add_source(kMostBytes);
  builder.add_source(kMostBytes);
  EXPECT_FALSE(find_smallest_budget(builder.finish(), {}).has_value());
}

}  // namespace
}  // namespace coop::sim
