// Programs whose steps repeat: the engine learns them, plans ahead, and whatever it plans, every number is
// what it would be without a budget.
#include <cstdio>

#include <gtest/gtest.h>

#include "support/program_run.hpp"
#include "support/repeat_program.hpp"

namespace coop {
namespace {

using testing::Case;
using testing::Coverage;
using testing::FaultPlan;
using testing::ProgramRun;
using testing::ProgramText;
using testing::RunOptions;

TEST(EngineForecast, EveryProgramComputesWhatItWouldWithoutABudget) {
  Coverage coverage;
  std::uint64_t runs = 0;
  std::uint64_t planned = 0;
  std::uint64_t planned_calls = 0;
  std::uint64_t calls = 0;
  std::uint64_t kept = 0;
  testing::for_each_case(testing::scaled(testing::is_full_scale() ? 2'000 : 500), [&](Case& one) {
    testing::RepeatOptions program;
    program.step.events = one.random.between(20, one.random.chance(0.1) ? 150 : 60);
    program.step.has_loops = false;
    if (one.random.chance(0.5)) program.step.widens = 0.2;
    program.steps = one.random.between(4, 16);
    program.departures = one.random.chance(0.5) ? 0.2 : 0;
    const ProgramText text = draw_repeated_program(one.random, program);
    for (int number = 0; number < 3; ++number) {
      RunOptions options;
      options.seed = one.seed;
      options.pool_bytes = to_bytes(one.random.between(40 + 25 * number, 70 + 25 * number));
      if (one.random.chance(0.3)) options.small_limit = kGrainBytes;
      options.engine.most_slowdown = 0;
      options.is_traced = one.is_traced;
      FaultPlan no_faults;
      ProgramRun run(options, coverage, no_faults);
      run.run(text);
      if (::testing::Test::HasFailure()) return;
      ++runs;
      const EngineStats stats = run.engine().stats();
      if (stats.planned_calls > 0) ++planned;
      planned_calls += stats.planned_calls;
      calls += stats.calls;
      kept += stats.kept;
    }
  });
  if (testing::wanted_seed()) return;
  const auto n = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
  std::printf(
      "%llu runs, %llu of them with a plan; of %llu operators %llu came as planned; %llu kept\n",
      n(runs), n(planned), n(calls), n(planned_calls), n(kept));
  // The test tests something; a few programs, as under full checks, say little.
  EXPECT_GT(planned, 0U);
  if (runs < 1500) return;
  EXPECT_GE(planned, runs / 5);
  EXPECT_GE(planned_calls, calls / 10);
  EXPECT_GE(kept, runs / 40);
}

}  // namespace
}  // namespace coop
