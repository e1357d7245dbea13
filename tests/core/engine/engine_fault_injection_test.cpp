// What if anything fails? On a set of programs, every allocation of the engine's own, every call to
// the world that may throw and every search for memory is made to fail once, in turn. To the
// program that is an operator that failed: it finds every invariant intact, tries again, and ends
// as if nothing had been.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "support/draw_program.hpp"
#include "support/failing_new.hpp"
#include "support/program_run.hpp"
#include "support/repeat_program.hpp"

namespace coop {
namespace {

using testing::Case;
using testing::Coverage;
using testing::FailsAt;
using testing::FaultPlace;
using testing::FaultPlan;
using testing::kFaultPlaces;
using testing::ProgramRun;
using testing::ProgramText;
using testing::RunOptions;
using testing::TextOptions;

// Counts for one kind of fault.
struct Injected {
  std::uint64_t runs = 0;      // with such a fault
  std::uint64_t surfaced = 0;  // of those: the program saw an exception
};

class Faults {
 public:
  Faults(const ProgramText& text, const RunOptions& options) : text_(text), options_(options) {
    RunOptions roomy = options;
    roomy.pool_bytes = to_bytes(4096);
    FaultPlan none;
    ProgramRun run(roomy, coverage_, none);
    contents_ = run.run(text_);
    EXPECT_EQ(run.out_of_memory(), 0U);
  }

  // How often each place is come by without any fault. False: the program does not fit this budget.
  bool count(FaultPlan::Counts& places, int& allocations) {
    FaultPlan none;
    const FailsAt never(std::numeric_limits<int>::max());
    const testing::Spared ours;
    ProgramRun run(options_, coverage_, none);
    expect_same(run);
    places = none.came_by();
    allocations = never.seen();
    return run.out_of_memory() == 0;
  }

  void fail_at(FaultPlace place, std::uint64_t number, bool is_out_of_memory, Injected& injected) {
    SCOPED_TRACE(std::string(kFaultPlaces[static_cast<std::size_t>(place)]) + ", number " +
                 std::to_string(number) + (is_out_of_memory ? ", out of memory" : ""));
    FaultPlan plan(place, number, is_out_of_memory);
    ProgramRun run(options_, coverage_, plan);
    expect_same(run);
    EXPECT_TRUE(plan.has_struck());
    ++injected.runs;
    injected.surfaced += run.faults();
  }

  void fail_allocation(int number, Injected& injected) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    FaultPlan none;
    std::uint64_t faults = 0;
    {
      const FailsAt fails(number);
      const testing::Spared ours;
      ProgramRun run(options_, coverage_, none);
      expect_same(run);
      faults = run.faults();
      EXPECT_EQ(fails.seen(), number + 1);
    }
    ++injected.runs;
    injected.surfaced += faults;
  }

 private:
  void expect_same(ProgramRun& run) {
    const ProgramRun::Contents contents = run.run(text_);
    // After a fault, memory lies differently, and may be too short for what fitted before.
    if (run.out_of_memory() == 0) {
      EXPECT_EQ(contents, contents_) << "the program has not ended right";
    }
  }

  const ProgramText& text_;
  const RunOptions& options_;
  Coverage coverage_;
  ProgramRun::Contents contents_;
};

struct Totals {
  std::uint64_t programs = 0;
  Injected allocations;
  std::array<Injected, kFaultPlaces.size()> places;

  void print() const {
    const auto line = [](const Injected& injected, const char* what) {
      std::printf("  %8llu  %s, of which %llu surfaced\n",
                  static_cast<unsigned long long>(injected.runs), what,
                  static_cast<unsigned long long>(injected.surfaced));
    };
    std::printf("faults injected in %llu programs:\n", static_cast<unsigned long long>(programs));
    line(allocations, "allocations of the engine's own");
    for (std::size_t i = 0; i < places.size(); ++i) line(places[i], kFaultPlaces[i]);
  }
};

TextOptions short_text(Case& one) {
  return {.events = one.random.between(15, 40),
          .largest = 4,
          .live = 12,
          .has_loops = false,
          .has_hooks = false};
}

RunOptions tight_budget(Case& one) {
  const auto policies = known_policies();
  RunOptions options;
  options.policy = policies[one.seed % policies.size()].name.data();
  options.seed = one.seed;
  options.pool_bytes = to_bytes(one.random.between(18, 40));
  options.is_stressed = one.random.chance(0.3);
  options.is_traced = one.is_traced;
  options.failure_restores = true;
  if (one.random.chance(0.3)) options.small_limit = kGrainBytes;
  if (one.random.chance(0.3)) options.engine.most_hidden_calls = one.random.below(6);
  return options;
}

TEST(EngineFaultInjection, EveryFaultIsAnOperatorThatFailed) {
  Totals totals;
  testing::for_each_case(testing::scaled(200), [&](Case& one) {
    // Some with steps that repeat, so that faults meet a plan too.
    const bool repeats = one.random.chance(0.2);
    const ProgramText text =
        repeats ? draw_repeated_program(one.random, {.step = short_text(one), .steps = 4})
                : draw_program(one.random, short_text(one));
    const RunOptions options = tight_budget(one);
    SCOPED_TRACE(options.policy);
    Faults faults(text, options);
    FaultPlan::Counts counts{};
    int allocations = 0;
    if (!faults.count(counts, allocations)) return;
    ++totals.programs;
    for (int k = 0; k < allocations && !::testing::Test::HasFailure(); ++k) {
      faults.fail_allocation(k, totals.allocations);
    }
    for (std::size_t place = 0; place < counts.size(); ++place) {
      for (std::uint64_t k = 0; k < counts[place] && !::testing::Test::HasFailure(); ++k) {
        for (const bool is_out_of_memory : {false, true}) {
          faults.fail_at(static_cast<FaultPlace>(place), k, is_out_of_memory, totals.places[place]);
        }
      }
    }
  });
  if (testing::wanted_seed()) return;
  totals.print();
  // The test tests something.
  EXPECT_GT(totals.programs, 0U);
  EXPECT_GT(totals.allocations.surfaced, 0U);
  // Regions of evicted Values do without memory for one more.
  EXPECT_GT(totals.allocations.surfaced, totals.allocations.runs / 10 * 9);
  // A few programs, as under full checks, cannot come by everything.
  if (totals.programs < 50) return;
  for (std::size_t i = 0; i < totals.places.size(); ++i) {
    EXPECT_GT(totals.places[i].surfaced, 0U) << kFaultPlaces[i];
  }
}

}  // namespace
}  // namespace coop
