// Random programs under a budget against what they compute without one: each program under several
// budgets and every policy.
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "support/draw_program.hpp"
#include "support/program_run.hpp"

namespace coop {
namespace {

using testing::Case;
using testing::Coverage;
using testing::FaultPlan;
using testing::ProgramRun;
using testing::ProgramText;
using testing::RunOptions;
using testing::TextOptions;

constexpr int kBudgets = 3;

struct Totals {
  Coverage coverage;
  std::uint64_t programs = 0;
  std::uint64_t runs = 0;
  std::uint64_t evicted = 0;
  std::uint64_t deep = 0;
  std::uint64_t evictions = 0;
  std::uint64_t replays = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t copies_aside = 0;
  std::uint64_t cuts = 0;
  std::uint64_t moves = 0;

  void add(const ProgramRun& run) {
    const Engine& engine = run.engine();
    ++runs;
    if (engine.eviction_stats().evictions > 0) ++evicted;
    if (engine.stats().deepest_replay >= 3) ++deep;
    evictions += engine.eviction_stats().evictions;
    moves += engine.eviction_stats().moves;
    replays += engine.stats().replays;
    copies_aside += engine.stats().copies_aside;
    cuts += engine.stats().cuts;
    out_of_memory += run.out_of_memory();
  }
  void print() const {
    const auto n = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
    std::printf("%llu programs, %llu runs: %llu evicted, %llu replayed three deep or more\n",
                n(programs), n(runs), n(evicted), n(deep));
    std::printf("%llu evictions, %llu replays, %llu times out of memory, %llu copies aside, ",
                n(evictions), n(replays), n(out_of_memory), n(copies_aside));
    std::printf("%llu cuts, %llu moves\n", n(cuts), n(moves));
    coverage.print();
  }
};

ProgramText draw(Case& one) {
  TextOptions options;
  options.events = one.random.between(20, one.random.chance(0.1) ? 400 : 120);
  return draw_program(one.random, options);
}

// From one that is too small for some operators to one that has room for nearly everything.
RunOptions draw_budget(Case& one, int number) {
  RunOptions options;
  options.seed = one.seed;
  options.pool_bytes = to_bytes(one.random.between(30 + 25 * number, 60 + 25 * number));
  options.is_stressed = one.random.chance(0.1);
  if (one.random.chance(0.2)) options.small_limit = kGrainBytes;
  if (one.random.chance(0.3)) options.engine.most_hidden_calls = one.random.below(20);
  if (one.random.chance(0.3)) {
    options.engine.most_depth = static_cast<std::uint32_t>(one.random.between(1, 10));
  }
  // Programs that check what was evicted all the time are slow by nature.
  options.engine.most_slowdown = one.random.chance(0.1) ? 5 : 0;
  options.is_traced = one.is_traced;
  return options;
}

TEST(EngineProperty, EveryProgramComputesWhatItWouldWithoutABudget) {
  Totals totals;
  const std::uint64_t programs = testing::scaled(testing::is_full_scale() ? 10'000 : 500);
  testing::for_each_case(programs, [&](Case& one) {
    ++totals.programs;
    const ProgramText text = draw(one);
    for (int number = 0; number < kBudgets; ++number) {
      RunOptions options = draw_budget(one, number);
      for (const PolicyTraits& policy : known_policies()) {
        options.policy = policy.name.data();
        const std::string what = std::string(policy.name) + ", budget " + std::to_string(number);
        SCOPED_TRACE(what);
        if (one.is_traced) std::printf("--- %s\n", what.c_str());
        FaultPlan no_faults;
        ProgramRun run(options, totals.coverage, no_faults);
        run.run(text);
        if (::testing::Test::HasFailure()) return;
        totals.add(run);
      }
    }
  });
  if (testing::wanted_seed()) return;
  totals.print();
  // The test tests something.
  EXPECT_GE(totals.evicted, totals.runs / 2);
  EXPECT_GE(totals.deep, totals.runs / 5);
  EXPECT_GT(totals.copies_aside, 0U);
  EXPECT_GT(totals.cuts, totals.runs / 10);
  EXPECT_GT(totals.moves, 0U);
  EXPECT_GT(totals.out_of_memory, 0U);
  // A few programs, as under full checks, cannot come by everything.
  if (totals.programs < 500) return;
  for (std::size_t i = 0; i < totals.coverage.counts.size(); ++i) {
    EXPECT_GT(totals.coverage.counts[i], 0U) << "never happened: " << Coverage::kTexts[i];
  }
}

}  // namespace
}  // namespace coop
