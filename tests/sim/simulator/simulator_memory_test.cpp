// The simulator's own memory is linear in the trace, whether that has many steps or long ones.
#include <array>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "core/base/check.hpp"
#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/trace_file.hpp"
#include "support/failing_new.hpp"

namespace coop::sim {
namespace {

using testing::MostBytes;

struct BytesPerCall {
  double read = 0;
  double simulate = 0;
};

BytesPerCall measure(const char* network, const GeneratorOptions& options, double ratio) {
  const std::string text = format_trace(generate(network, options));
  const MostBytes reading;
  const Trace trace = parse_trace(text, "x");
  const auto calls = static_cast<double>(trace.call_count());
  BytesPerCall bytes{.read = static_cast<double>(reading.so_far()) / calls};
  const auto peak = static_cast<double>(measure_demand(trace).peak_bytes);
  const MostBytes simulating;
  const SimulationResult result = simulate(trace, {.budget = static_cast<Bytes>(peak * ratio)});
  bytes.simulate = static_cast<double>(simulating.so_far()) / calls;
  EXPECT_TRUE(result.is_ok());
  std::printf("%s, %.0f calls: %.0f bytes a call to read, %.0f to simulate\n", network, calls,
              bytes.read, bytes.simulate);
  return bytes;
}

// Ten times the trace, ten times the bytes, or so: arrays grow by doubling, and the pool's by chunks.
void expect_linear(const BytesPerCall& one, const BytesPerCall& ten) {
  constexpr double kLuck = 3;
  EXPECT_LT(ten.read, kLuck * one.read);
  EXPECT_LT(ten.simulate, kLuck * one.simulate);
  EXPECT_LT(ten.read, 500);
  EXPECT_LT(ten.simulate, 2000);
}

// Full checks look at the whole pool after every change.
constexpr std::size_t kTimes = kFullChecks ? 1 : 10;

TEST(SimulatorMemory, IsLinearInTheStepsOfATrace) {
  const auto run = [](std::size_t steps) {
    return measure("residual", {.seed = 1, .steps = steps, .layers = 6}, 0.6);
  };
  const BytesPerCall one = run(10 * kTimes);
  const BytesPerCall ten = run(100 * kTimes);
  expect_linear(one, ten);
  EXPECT_LT(ten.simulate, one.simulate) << "what the engine keeps of earlier steps is bounded";
}

TEST(SimulatorMemory, IsLinearInTheLengthOfAStep) {
  const auto run = [](std::uint64_t layers) {
    return measure("chain", {.seed = 1, .steps = 1, .layers = layers}, 1.2);
  };
  expect_linear(run(60 * kTimes), run(600 * kTimes));
}

}  // namespace
}  // namespace coop::sim
