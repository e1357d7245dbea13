// Steps that repeat, and have a plan (core/forecast, core/plan) as soon as that is seen.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/bytes.hpp"
#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/dtr_log.hpp"
#include "sim/trace/trace_file.hpp"
#include "support/recorded_logs.hpp"

namespace coop::sim {
namespace {

// A chain, forwards and backwards, whose operators take a copy as large as their result before that itself, and give
// it back afterwards: as convolutions on a CPU do.
Trace chain_with_copies(std::size_t length, std::size_t steps) {
  std::string text = "coop-trace 2\nname 1 forward\nname 2 backward\nsource 0 1048576\n";
  std::size_t events = 1;
  std::size_t next = 1;
  const auto call = [&](const std::string& words, std::size_t layer) {
    const std::string bytes = std::to_string((layer * 5 % 7 + 1) * 1_MiB);
    text += "call " + words + " makes " + std::to_string(next) + ":" + bytes + " memory +" + bytes +
            " =0 -0\n";
    ++events;
    return next++;
  };
  const auto release = [&](std::size_t storage) {
    text += "release " + std::to_string(storage) + "\n";
    ++events;
  };
  for (std::size_t step = 0; step < steps; ++step) {
    text += "step\n";
    ++events;
    std::vector<std::size_t> made{0};
    for (std::size_t i = 0; i < length; ++i) {
      made.push_back(call("1 0 1000 reads " + std::to_string(made.back()), i));
    }
    std::size_t gradient = 0;  // the source, at first
    for (std::size_t i = length; i > 0; --i) {
      const std::string reads = std::to_string(made[i]) + " " + std::to_string(gradient);
      const std::size_t before = gradient;
      gradient = call("2 0 2000 reads " + reads, i - 1);
      release(made[i]);
      if (before > 0) release(before);
    }
    release(gradient);
  }
  return parse_trace(text + "end " + std::to_string(events) + "\n", "test");
}

// What was taken first lay in the place of the result, which then had to lie elsewhere, and so had others.
TEST(PlannedSteps, MemoryThatIsTakenBeforeTheResultHasAPlaceOfItsOwn) {
  const Trace trace = chain_with_copies(16, 6);
  const auto peak = static_cast<double>(measure_demand(trace).peak_bytes);
  for (const double ratio : {0.7, 0.6, 0.5}) {
    const auto last_step = [&](const char* policy) {
      const SimulationResult result =
          simulate(trace, {.policy = policy, .budget = static_cast<Bytes>(ratio * peak)});
      EXPECT_TRUE(result.is_ok()) << result.failure->why;
      return result.last();
    };
    const StepResult planned = last_step("coop");
    EXPECT_EQ(planned.searches, 0U) << ratio;
    EXPECT_LT(planned.overhead(), last_step("coop-online").overhead()) << ratio;
  }
}

// In the backward pass a cell's state is released shortly before its tanh is needed: made again from the gates, that
// costs four operators instead of one (Note [Coming back early]).
TEST(PlannedSteps, AnLstmsTanhComesBackWhileItsStateIsThere) {
  const Trace trace = read_dtr_log(testing::h200_log("bilstm"), Mutation::kInPlace);
  const auto peak = static_cast<double>(measure_demand(trace).peak_bytes);
  const SimulationResult result =
      simulate(trace, {.policy = "coop", .budget = static_cast<Bytes>(0.8 * peak), .steps = 3});
  ASSERT_TRUE(result.is_ok()) << result.failure->why;
  EXPECT_EQ(result.last().searches, 0U);
  EXPECT_LT(result.last().overhead(), 0.03);  // 0.045 without
}

double overhead_of_sixth_step(std::string_view kind, std::uint64_t seed, double ratio) {
  const Trace trace = generate(kind, {.seed = seed, .steps = 6});
  const auto peak = static_cast<double>(measure_demand(trace).peak_bytes);
  const SimulationResult result =
      simulate(trace, {.policy = "coop", .budget = static_cast<Bytes>(ratio * peak), .steps = 6});
  EXPECT_TRUE(result.is_ok()) << result.failure->why;
  return result.last().overhead();
}

// Here the plan is left near the end of every step, since lineages end elsewhere than in the one it was made from, and in
// the end another is made. What it has to be better than is a step without a plan, not one that followed the first.
TEST(PlannedSteps, ASecondPlanIsNotComparedWithTheFirst) {
  EXPECT_LT(overhead_of_sixth_step("lstm", 10, 0.4), 0.05);  // 0.17 when it is refused
}

// When everything is pushed together for the first plan, slabs stay where they are. Nothing lay behind an empty one, and a
// tenth of the pool was a hole before one that was in use.
TEST(PlannedSteps, SlabsLeaveNoHoles) {
  EXPECT_LT(overhead_of_sixth_step("chain", 19, 0.6), 0.005);       // 0.015
  EXPECT_LT(overhead_of_sixth_step("transformer", 17, 0.6), 0.13);  // 0.16
}

}  // namespace
}  // namespace coop::sim
