// Plans of random steps, carried out by the plainest means: they fit, in bytes and in addresses, and cost what they
// say.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "core/plan/planner.hpp"
#include "core/plan/step_facts.hpp"
#include "support/naive_step.hpp"
#include "support/step_builder.hpp"

namespace coop {
namespace {

using testing::Case;
using testing::NaiveStep;

NaiveStep::Name name_of(const StepPlan& plan, StepPlan::Version version) {
  const auto next = std::upper_bound(plan.first_version.begin(), plan.first_version.end(), version);
  const auto call = static_cast<std::size_t>(next - plan.first_version.begin()) - 1;
  return {call, version - plan.first_version[call]};
}

NaiveStep::Decisions decisions_of(const StepPlan& plan, const StepFacts& facts) {
  NaiveStep::Decisions decisions;
  for (StepFacts::Call call = 0; call < facts.calls; ++call) {
    for (const StepFacts::Version version : facts.early[call]) {
      const auto is_in = [&](const std::vector<StepPlan::Version>& versions) {
        return std::find(versions.begin(), versions.end(), version) != versions.end();
      };
      if (!is_in(plan.comes_along[call]) && !is_in(plan.goes_after[call])) continue;
      decisions.early[call].push_back(name_of(plan, version));
    }
  }
  for (StepPlan::Version version = 0; version < plan.is_kept.size(); ++version) {
    if (plan.is_kept[version]) decisions.kept.insert(name_of(plan, version));
  }
  for (std::size_t call = 0; call < plan.goes_after.size(); ++call) {
    for (const StepPlan::Version version : plan.goes_after[call]) {
      decisions.drops.insert({name_of(plan, version), call});
    }
    for (const StepPlan::Version version : plan.comes_along[call]) {
      decisions.along[call].push_back(name_of(plan, version));
    }
  }
  return decisions;
}

void expect_in_order(const StepPlan& plan) {
  for (StepPlan::Version version = 0; version < plan.absences.size(); ++version) {
    const std::vector<StepPlan::Absence>& absences = plan.absences[version];
    for (std::size_t i = 0; i < absences.size(); ++i) {
      ASSERT_LT(absences[i].from, absences[i].until);
      ASSERT_TRUE(i == 0 || absences[i - 1].until <= absences[i].from);
      const auto& going = plan.goes_after[absences[i].from];
      ASSERT_EQ(std::count(going.begin(), going.end(), version), 1);
    }
    for (std::size_t call = 0; call < plan.goes_after.size(); ++call) {
      const bool is_absent = std::any_of(absences.begin(), absences.end(), [&](const auto& one) {
        return one.from <= call && call < one.until;
      });
      ASSERT_EQ(plan.is_absent(version, call), is_absent);
    }
  }
}

struct Totals {
  std::uint64_t plans = 0;
  std::uint64_t with_absences = 0;
  std::uint64_t with_kept = 0;
  std::uint64_t none = 0;
};

void expect_good_plan(Case& one, const StepRecord& step, Bytes small_limit, Totals& totals) {
  NaiveStep unplanned(step, small_limit, {});
  unplanned.run();
  PlanOptions options{.small_limit = small_limit};
  const double part = 0.5 + 0.6 * one.random.unit();
  options.budget = static_cast<Bytes>(part * static_cast<double>(unplanned.peak())) + 1024;
  if (one.random.chance(0.3)) {  // in pieces, in no order
    for (int i = one.random.between(1, 3); i > 0; --i) {
      const Bytes begin = one.random.below(options.budget / 512 + 1) * 512;
      options.held.push_back({begin, begin + 512});
    }
    const auto same = [](const ByteRange& a, const ByteRange& b) { return a.begin == b.begin; };
    const auto end = std::unique(options.held.begin(), options.held.end(), same);
    options.held.erase(end, options.held.end());
    if (options.held.size() > 2) options.held.resize(1);
  }
  const std::optional<StepPlan> plan = plan_step(step, options);
  if (!plan) {
    ++totals.none;
    return;
  }
  ++totals.plans;
  if (plan->overhead_ns > 0) ++totals.with_absences;
  if (std::count(plan->is_kept.begin(), plan->is_kept.end(), true) > 0) ++totals.with_kept;
  expect_in_order(*plan);
  const StepFacts facts(step, small_limit, options.most_depth);
  NaiveStep naive(step, small_limit, decisions_of(*plan, facts));
  naive.use_places(*plan, options.held, options.budget);
  naive.run();
  ASSERT_DOUBLE_EQ(naive.overhead(), plan->overhead_ns);
  ASSERT_LE(naive.peak(), options.budget);
}

TEST(Planner, PlansOfAnythingFit) {
  Totals totals;
  const std::uint64_t cases = testing::for_each_case(testing::scaled(10'000), [&](Case& one) {
    testing::RandomStepOptions options;
    options.calls = one.random.between(1, 40);
    options.writes = one.random.chance(0.5) ? 0.3 : 0.05;
    const StepRecord step = testing::random_step(one.random, options);
    expect_good_plan(one, step, one.random.chance(0.7) ? 0 : 1024, totals);
  });
  if (cases < 100) return;
  EXPECT_GT(totals.plans, cases / 5);
  EXPECT_GT(totals.with_absences, cases / 50);
  EXPECT_GT(totals.none, cases / 50);
}

TEST(Planner, PlansOfTrainingFit) {
  Totals totals;
  const std::uint64_t cases = testing::for_each_case(testing::scaled(1'000), [&](Case& one) {
    const StepRecord step = testing::random_training_step(one.random, one.random.between(2, 20));
    expect_good_plan(one, step, one.random.chance(0.7) ? 0 : 1024, totals);
  });
  if (cases < 100) return;
  EXPECT_GT(totals.plans, cases / 2);
  EXPECT_GT(totals.with_absences, cases / 3);
  EXPECT_GT(totals.with_kept, cases / 20);
}

}  // namespace
}  // namespace coop
