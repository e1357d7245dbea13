// How good plans are: against all sets of drops there are, on tiny steps.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/plan/least_memory.hpp"
#include "core/plan/planner.hpp"
#include "core/plan/step_evaluation.hpp"
#include "support/step_builder.hpp"

namespace coop {
namespace {

using testing::Case;
using Detail = StepEvaluation::Detail;

constexpr std::uint32_t kNoLimit = 1'000'000;
constexpr int kMostEvaluations = 20'000;

// The least overhead that fits; without addresses, so no plan can be better. All sets of drops are tried that do
// something: each is its first drop in time, then one in a gap that is there then, and so on. With all that can be kept,
// or a part of it.
class Optimum {
 public:
  Optimum(const StepFacts& facts, Bytes budget)
      : budget_(budget), evaluation_(facts), drops_(facts.versions.size()) {
    for (StepFacts::Version version = 0; version < facts.versions.size(); ++version) {
      if (facts.is_keepable(version)) keepable_.push_back(version);
    }
  }

  // None: there are too many.
  std::optional<double> find() {
    if (keepable_.size() > 10) return std::nullopt;
    for (std::size_t kept = 0; kept < std::size_t{1} << keepable_.size(); ++kept) {
      for (std::size_t i = 0; i < keepable_.size(); ++i) {
        drops_.set_kept(keepable_[i], ((kept >> i) & 1U) != 0);
      }
      look(nullptr);
    }
    if (evaluations_ > kMostEvaluations) return std::nullopt;
    return best_;
  }

 private:
  // No deeper than a tiny step has gaps.
  void look(const Drop* last) {  // NOLINT(misc-no-recursion)
    if (++evaluations_ > kMostEvaluations) return;
    if (!evaluation_.run(drops_, Detail::kBlocks)) return;
    if (evaluation_.most() <= budget_) best_ = std::min(best_, evaluation_.overhead());
    const std::vector<Gap> gaps = evaluation_.gaps();
    for (const Gap& gap : gaps) {
      const bool is_later = last == nullptr || std::pair(gap.from, gap.version) >
                                                   std::pair(last->after, last->version);
      if (gap.is_dropped || !is_later) continue;
      const Drop drop{gap.version, gap.from};
      drops_.add(drop);
      look(&drop);
      drops_.remove(drop);
    }
  }

  Bytes budget_;
  StepEvaluation evaluation_;
  Drops drops_;
  std::vector<StepFacts::Version> keepable_;
  int evaluations_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

struct Totals {
  double optimum = 0;
  double planned = 0;
  std::uint64_t both = 0;
  std::uint64_t missed = 0;
};

void compare(Case& one, const StepRecord& step, Totals& totals) {
  const StepFacts facts(step, 0, kNoLimit);
  StepEvaluation evaluation(facts);
  ASSERT_TRUE(evaluation.run(Drops(facts.versions.size()), Detail::kMemory));
  const auto budget =
      static_cast<Bytes>((0.5 + 0.5 * one.random.unit()) * static_cast<double>(evaluation.most()));
  const std::optional<double> optimum = Optimum(facts, budget / 512 * 512).find();
  if (!optimum) return;
  const double best = *optimum;
  ASSERT_TRUE(std::isinf(best) || least_memory(facts) <= budget);
  const std::optional<StepPlan> plan = plan_step(step, {.budget = budget});
  if (!plan) {
    if (!std::isinf(best)) ++totals.missed;
    return;
  }
  ASSERT_GE(plan->overhead_ns, best);
  ++totals.both;
  totals.optimum += best;
  totals.planned += plan->overhead_ns;
}

TEST(PlannerBruteForce, PlansAreNearTheOptimum) {
  Totals totals;
  const std::uint64_t cases = testing::for_each_case(testing::scaled(600), [&](Case& one) {
    compare(one, testing::random_training_step(one.random, one.random.between(2, 3), 3), totals);
  });

  if (cases < 100) return;
  EXPECT_GT(totals.both, cases / 10);
  EXPECT_LE(totals.planned, 1.1 * totals.optimum);
  EXPECT_LE(totals.missed, totals.both / 10);
}

TEST(PlannerBruteForce, PlansOfAnythingAreNearTheOptimum) {
  Totals totals;
  const std::uint64_t cases = testing::for_each_case(testing::scaled(1'000), [&](Case& one) {
    testing::RandomStepOptions options;
    options.calls = one.random.between(3, 9);
    compare(one, testing::random_step(one.random, options), totals);
  });

  if (cases < 100) return;
  EXPECT_GT(totals.both, cases / 12);
  EXPECT_LE(totals.planned, 1.1 * totals.optimum);
  EXPECT_LE(totals.missed, totals.both / 10);
}

}  // namespace
}  // namespace coop
