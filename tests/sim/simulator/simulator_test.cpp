// Small traces whose every figure can be worked out by hand.
#include "sim/simulator/simulator.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

// Lines of a trace, in which sizes may be written "1M"; the header and the end come by themselves.
Trace trace_of(const std::string& lines) {
  std::string text = "coop-trace 1\nname 1 f\nname 2 g\nname 3 h\n";
  std::size_t events = 0;
  for (const char c : lines) {
    if (c == 'M') {
      const int units = text.back() - '0';
      text.pop_back();
      text += std::to_string(units * (1 << 20));
    } else {
      text += c;
    }
    if (c == '\n') ++events;
  }
  return parse_trace(text + "end " + std::to_string(events) + "\n", "test");
}

// a = f(s), b = g(a), c = h(b), and then both a and c are read.
Trace diamond() {
  return trace_of(
      "source 0 1M\n"
      "call 1 0 10 reads 0 makes 1:1M\n"
      "call 2 0 20 reads 1 makes 2:1M\n"
      "call 3 0 30 reads 2 makes 3:1M\n"
      "release 2\n"
      "call 3 0 40 reads 1 3\n"
      "release 1\n"
      "release 3\n");
}

// With a policy that packs blocks without gaps, so that a trace that just fits does.
SimulationOptions within(Bytes budget) { return {.policy = "coop-paper", .budget = budget}; }
SimulationOptions within(Bytes budget, std::size_t steps) {
  return {.policy = "coop-paper", .budget = budget, .steps = steps};
}

TEST(Demand, CountsWhatIsAliveAtOnce) {
  const Demand demand = measure_demand(diamond());
  EXPECT_EQ(demand.peak_bytes, 4_MiB);
  EXPECT_EQ(demand.peak_event, 3U);
  EXPECT_EQ(demand.base_ns, 100);
}

TEST(Demand, CountsBytesAsTheyWereAskedFor) {
  EXPECT_EQ(measure_demand(trace_of("source 0 7\nsource 1 5\nrelease 0\nsource 2 6\n")).peak_bytes,
            12U);
  EXPECT_EQ(
      measure_demand(trace_of("call 1 0 1 makes 0:100 workspace 1000\nsource 1 50\n")).peak_bytes,
      1100U);
  EXPECT_EQ(measure_demand(trace_of("")).peak_bytes, 0U);
}

TEST(Demand, OfACallIsTheMostSinceTheOneBefore) {
  const Trace trace = trace_of(
      "source 0 100\nsource 1 50\nrelease 1\n"
      "call 1 0 1 makes 2:10 workspace 5\nrelease 2\ncall 1 0 1 reads 0\n");
  EXPECT_EQ(measure_demand_by_call(trace), (std::vector<Bytes>{150, 100}));
  const std::vector<Bytes> by_call = measure_demand_by_call(diamond());
  EXPECT_EQ(*std::max_element(by_call.begin(), by_call.end()),
            measure_demand(diamond()).peak_bytes);
}

TEST(Simulator, WithoutABindingBudgetNothingHappens) {
  const SimulationResult result = simulate(diamond(), within(4_MiB));
  ASSERT_TRUE(result.is_ok());
  ASSERT_EQ(result.steps.size(), 1U);
  EXPECT_EQ(result.last().base_ns, 100);
  EXPECT_EQ(result.last().total_ns(), 100);
  EXPECT_EQ(result.last().overhead(), 0);
  EXPECT_EQ(result.last().evictions, 0U);
  EXPECT_EQ(result.last().searches, 0U);
  EXPECT_EQ(result.most_held_bytes, 4_MiB);
}

TEST(Simulator, EvictsAndRecomputes) {
  for (const PolicyTraits& policy : known_policies()) {
    SCOPED_TRACE(policy.name);
    if (policy.fit != Fit::kBest) continue;  // leaves gaps in so small a pool
    // Making c leaves only a to go; it comes back for the last call.
    const SimulationResult result =
        simulate(diamond(), {.policy = std::string(policy.name), .budget = 3_MiB});
    ASSERT_TRUE(result.is_ok()) << result.failure->why;
    EXPECT_EQ(result.last().base_ns, 100);
    EXPECT_EQ(result.last().recomputed_ns, 10);
    EXPECT_DOUBLE_EQ(result.last().overhead(), 0.1);
    EXPECT_EQ(result.last().evictions, 1U);
    EXPECT_EQ(result.last().evicted_bytes, 1_MiB);
    EXPECT_EQ(result.last().recomputed_calls, 1U);
    EXPECT_EQ(result.last().searches, 1U);
    EXPECT_EQ(result.last().fragmentation, 0);
    EXPECT_EQ(result.most_held_bytes, 3_MiB);
  }
}

TEST(Simulator, SaysWhereATraceDoesNotFit) {
  const SimulationResult result = simulate(diamond(), within(2_MiB));
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.failure->event, 2U);
  EXPECT_EQ(result.failure->op, "g");
  EXPECT_EQ(result.failure->memory.requested, 1_MiB);
  EXPECT_NE(result.failure->why.find("out of memory"), std::string::npos);
  EXPECT_TRUE(result.steps.empty());
}

TEST(Simulator, WorkspaceIsThereOnlyWhileItsCallRuns) {
  const Trace trace = trace_of(
      "source 0 1M\n"
      "call 2 0 1 reads 0 makes 1:1M workspace 3M\n"
      "call 2 0 1 reads 1 makes 2:1M workspace 2M\n");
  EXPECT_EQ(measure_demand(trace).peak_bytes, 5_MiB);
  EXPECT_FALSE(simulate(trace, within(4_MiB)).is_ok());
  const SimulationResult result = simulate(trace, within(5_MiB));
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(result.last().evictions, 0U);
  EXPECT_EQ(result.most_held_bytes, 5_MiB);
}

TEST(Simulator, ReplayNeedsItsWorkspaceToo) {
  // a is evicted for b, and made again when c is gone; with its workspace that evicts b.
  const Trace trace = trace_of(
      "source 0 1M\n"
      "call 1 0 10 reads 0 makes 1:1M workspace 1M\n"
      "call 2 0 20 reads 0 makes 2:1M\n"
      "call 3 0 30 makes 3:1M\n"
      "release 3\n"
      "call 3 0 40 reads 1\n");
  const SimulationResult result =
      simulate(trace, {.policy = "lru", .budget = 3_MiB, .brings_back_outputs = false});
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(result.last().recomputed_ns, 10);
  EXPECT_EQ(result.last().evictions, 2U);
}

TEST(Simulator, ChangedWhereItIs) {
  // v is changed in place, evicted, and made again by running both of its calls.
  const Trace trace = trace_of(
      "source 0 1M\n"
      "call 1 0 10 reads 0 makes 1:1M\n"
      "call 2 0 5 changes 1\n"
      "call 3 0 30 makes 2:1M\n"
      "release 2\n"
      "call 3 0 40 reads 1\n"
      "release 1\n");
  const SimulationResult result = simulate(trace, within(2_MiB));
  ASSERT_TRUE(result.is_ok()) << result.failure->why;
  EXPECT_EQ(result.last().recomputed_ns, 15);
  EXPECT_EQ(result.last().recomputed_calls, 2U);
}

TEST(Simulator, OverwrittenIsNotMadeAgain) {
  // Evicted, and then overwritten without being read: it needs memory, not its contents.
  const Trace trace = trace_of(
      "source 0 1M\n"
      "call 1 0 10 reads 0 makes 1:1M\n"
      "call 3 0 30 makes 2:1M\n"
      "release 2\n"
      "call 2 0 5 reads 0 overwrites 1\n"
      "call 3 0 30 makes 3:1M\n"
      "release 3\n"
      "call 3 0 40 reads 1\n"
      "release 1\n");
  const SimulationResult result = simulate(trace, within(2_MiB));
  ASSERT_TRUE(result.is_ok()) << result.failure->why;
  EXPECT_EQ(result.last().recomputed_ns, 5) << "only the overwriting call is run again";
  EXPECT_EQ(result.last().evictions, 2U);
}

TEST(Simulator, WhatCannotBeMadeAgainStays) {
  const auto needs = [](const std::string& second_call) {
    return trace_of("source 0 1M\n" + second_call +
                    "call 3 0 30 makes 2:1M\nrelease 2\ncall 3 0 40 reads 1\n");
  };
  EXPECT_TRUE(simulate(needs("call 1 0 10 reads 0 makes 1:1M\n"), within(2_MiB)).is_ok());
  EXPECT_FALSE(simulate(needs("call 1 0 10 reads 0 makes 1:1M once\n"), within(2_MiB)).is_ok());
  EXPECT_FALSE(simulate(needs("call 1 0 10 reads 0 makes-source 1:1M\n"), within(2_MiB)).is_ok());
  EXPECT_FALSE(
      simulate(needs("call 1 0 10 reads 0 makes 1:1M\nexport 1\n"), within(2_MiB)).is_ok());
}

TEST(Simulator, PinnedStaysUntilItIsUnpinned) {
  const auto needs = [](const std::string& before, const std::string& after) {
    return trace_of("source 0 1M\ncall 1 0 10 reads 0 makes 1:1M\npin 1\n" + before +
                    "call 3 0 30 makes 2:1M\n" + after + "release 2\n");
  };
  EXPECT_FALSE(simulate(needs("", "unpin 1\n"), within(2_MiB)).is_ok());
  EXPECT_TRUE(simulate(needs("unpin 1\n", ""), within(2_MiB)).is_ok());
  EXPECT_TRUE(simulate(needs("call 2 0 1 changes 1\nunpin 1\n", ""), within(2_MiB)).is_ok());
}

TEST(Simulator, AddressesCanBeIgnored) {
  // Two holes of 1 MiB, with what cannot move between them.
  const Trace trace = trace_of(
      "source 0 1M\n"
      "source 1 1M\n"
      "source 2 1M\n"
      "export 1\n"
      "release 0\n"
      "release 2\n"
      "call 1 0 10 makes 3:2M\n");
  SimulationOptions options{.policy = "dtr", .budget = 3_MiB};
  EXPECT_FALSE(simulate(trace, options).is_ok());
  options.ignores_addresses = true;
  EXPECT_TRUE(simulate(trace, options).is_ok());
  options.budget -= 1_KiB;
  EXPECT_FALSE(simulate(trace, options).is_ok());
  options.policy = "coop";
  EXPECT_THROW(simulate(trace, options), InvalidArgument) << "without addresses, no windows";
}

TEST(Simulator, OutputsAreBroughtBackTogether) {
  const Trace trace = trace_of(
      "source 0 1M\n"
      "call 1 0 10 reads 0 makes 1:1M\n"
      "call 2 0 20 reads 0 makes 2:1M\n"
      "call 3 0 30 makes 3:1M\n"
      "release 3\n");
  const SimulationResult enough = simulate(trace, within(3_MiB));
  ASSERT_TRUE(enough.is_ok());
  EXPECT_EQ(enough.last().recomputed_calls, 1U);
  const SimulationResult too_little = simulate(trace, within(2_MiB));
  ASSERT_FALSE(too_little.is_ok());
  EXPECT_EQ(too_little.failure->event, trace.events().size());
  EXPECT_EQ(too_little.failure->op, "");
  EXPECT_TRUE(
      simulate(trace, {.policy = "dtr", .budget = 2_MiB, .brings_back_outputs = false}).is_ok());
}

TEST(Simulator, RunsATraceAgainForMoreSteps) {
  const SimulationResult result = simulate(diamond(), within(3_MiB, 4));
  ASSERT_TRUE(result.is_ok());
  ASSERT_EQ(result.steps.size(), 4U);
  for (const StepResult& step : result.steps) {
    EXPECT_EQ(step.base_ns, 100);
    EXPECT_EQ(step.recomputed_ns, 10);
  }
}

TEST(Simulator, StepsBeginAtTheirMarks) {
  const Trace trace = trace_of(
      "source 0 1M\n"
      "call 1 0 1 reads 0\n"
      "step\n"
      "call 1 0 10 reads 0\n"
      "call 1 0 10 reads 0\n"
      "step\n"
      "call 1 0 300 reads 0\n");
  const auto base = [&](std::size_t steps) {
    std::vector<double> costs;
    for (const StepResult& step : simulate(trace, within(2_MiB, steps)).steps) {
      costs.push_back(step.base_ns);
    }
    return costs;
  };
  EXPECT_EQ(base(0), (std::vector<double>{20, 300}));
  EXPECT_EQ(base(1), (std::vector<double>{20}));
  EXPECT_EQ(base(2), (std::vector<double>{20, 300}));
  EXPECT_EQ(base(5), (std::vector<double>{20, 300, 20, 300, 20}));
}

TEST(Simulator, SourcesThatWereReleasedComeAgain) {
  const Trace trace = trace_of(
      "source 0 1M\n"
      "source 1 1M\n"
      "call 1 0 10 reads 0 1 changes 0 makes 2:1M\n"
      "release 1\n"
      "call 1 0 10 reads 0 2\n");
  const SimulationResult result = simulate(trace, within(3_MiB, 50));
  ASSERT_TRUE(result.is_ok()) << "in step " << result.failure->step << ": " << result.failure->why;
  EXPECT_EQ(result.steps.size(), 50U);
}

TEST(Simulator, EmptyThings) {
  EXPECT_TRUE(simulate(trace_of(""), within(1_MiB)).is_ok());
  const Trace empty_storages = trace_of("source 0 0\ncall 1 0 0 reads 0 makes 1:0\nrelease 0\n");
  const SimulationResult result = simulate(empty_storages, within(1_MiB, 2));
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(result.last().overhead(), 0);
}

TEST(Simulator, RefusesWhatMakesNoSense) {
  EXPECT_THROW(simulate(diamond(), {.policy = "clairvoyant", .budget = 1_MiB}), InvalidArgument);
  EXPECT_THROW(simulate(diamond(), within(0)), InvalidArgument);
}

}  // namespace
}  // namespace coop::sim
