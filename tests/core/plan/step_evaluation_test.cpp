// The evaluation of random steps with random drops against a plain way of doing the same.
#include "core/plan/step_evaluation.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "support/naive_step.hpp"
#include "support/step_builder.hpp"

namespace coop {
namespace {

using testing::Case;
using testing::NaiveStep;
using Detail = StepEvaluation::Detail;

constexpr std::uint32_t kNoLimit = 1'000'000;

NaiveStep::Name name_of(const StepFacts& facts, StepFacts::Version version) {
  const auto next =
      std::upper_bound(facts.first_version.begin(), facts.first_version.end(), version);
  const auto call = static_cast<std::size_t>(next - facts.first_version.begin()) - 1;
  return {call, version - facts.first_version[call]};
}

struct Evaluated {
  Drops drops;
  NaiveStep::Decisions decisions;
};

Evaluated random_drops(Case& one, const StepFacts& facts) {
  Evaluated result{Drops(facts.versions.size()), {}};
  const double chance = one.random.unit();
  for (StepFacts::Version version = 0; version < facts.first_version.back(); ++version) {
    const StepFacts::VersionFacts& about = facts.versions[version];
    if (about.producer == StepFacts::kNone) continue;
    const bool is_kept = facts.is_keepable(version) && one.random.chance(0.5);
    if (is_kept) {
      result.drops.set_kept(version, true);
      result.decisions.kept.insert(name_of(facts, version));
      one.trace("keep version %u until call %u\n", version, about.kept_until);
    }
    const StepFacts::Call until = is_kept ? about.kept_until : about.current_until;
    for (StepFacts::Call call = about.producer; call < until; ++call) {
      if (!one.random.chance(chance)) continue;
      result.drops.add({version, call});
      result.decisions.drops.insert({name_of(facts, version), call});
      one.trace("drop version %u after call %u\n", version, call);
    }
  }
  return result;
}

void expect_same(Case& one, const StepRecord& step, Bytes small_limit, std::uint64_t& with_kept) {
  const StepFacts facts(step, small_limit, kNoLimit);
  Evaluated given = random_drops(one, facts);
  if (!given.decisions.kept.empty()) ++with_kept;
  StepEvaluation evaluation(facts);
  if (!evaluation.run(given.drops, Detail::kBlocks)) return;  // too much runs again
  for (const ComesAlong& along : evaluation.along()) {
    given.decisions.along[along.call].push_back(name_of(facts, along.version));
  }
  for (StepFacts::Call call = 0; call < facts.calls; ++call) {
    for (const StepFacts::Version version : facts.early[call]) {
      given.decisions.early[call].push_back(name_of(facts, version));
    }
  }
  NaiveStep naive(step, small_limit, given.decisions);
  naive.run();
  ASSERT_DOUBLE_EQ(evaluation.overhead(), naive.overhead());
  ASSERT_EQ(evaluation.most(), naive.peak());

  // In less detail it is the same.
  StepEvaluation other(facts);
  for (const Detail detail : {Detail::kGaps, Detail::kMemory}) {
    ASSERT_TRUE(other.run(given.drops, detail));
    ASSERT_EQ(other.overhead(), evaluation.overhead());
    ASSERT_EQ(other.memory(), evaluation.memory());
  }
  // Blocks are what is held: at every moment as much.
  std::vector<Bytes> held(evaluation.memory().size());
  for (const PlannedBlock& block : evaluation.blocks()) {
    ASSERT_LE(block.from, block.until);
    for (Moment moment = block.from; moment <= block.until; ++moment) held[moment] += block.bytes;
  }
  ASSERT_EQ(held, evaluation.memory());
}

TEST(StepEvaluation, IsTheSameAsTheNaiveOne) {
  std::uint64_t with_kept = 0;
  const std::uint64_t runs = testing::for_each_case(testing::scaled(20'000), [&](Case& one) {
    testing::RandomStepOptions options;
    options.calls = one.random.between(1, 25);
    options.writes = one.random.chance(0.5) ? 0.4 : 0.1;
    const StepRecord step = testing::random_step(one.random, options);
    expect_same(one, step, one.random.chance(0.7) ? 0 : 1024, with_kept);
  });
  if (runs < 100) return;
  EXPECT_GT(with_kept, runs / 50);
}

// A gap's cost is what the evaluation then says, where nothing else is dropped.
TEST(StepEvaluation, EstimatesWhatADropCosts) {
  testing::for_each_case(testing::scaled(5'000), [&](Case& one) {
    testing::RandomStepOptions options;
    options.calls = one.random.between(2, 25);
    const StepRecord step = testing::random_step(one.random, options);
    const StepFacts facts(step, 0, kNoLimit);
    StepEvaluation evaluation(facts);
    ASSERT_TRUE(evaluation.run(Drops(facts.versions.size()), Detail::kGaps));
    ASSERT_EQ(evaluation.overhead(), 0);
    const std::vector<Gap> gaps = evaluation.gaps();
    const std::vector<Bytes> memory = evaluation.memory();
    for (const Gap& gap : gaps) {
      Drops drops(facts.versions.size());
      drops.add({gap.version, gap.from});
      ASSERT_TRUE(evaluation.run(drops, Detail::kMemory));
      ASSERT_DOUBLE_EQ(evaluation.overhead(), gap.is_last ? 0 : gap.cost);
      // Nothing ran again before the gap's end.
      const Bytes bytes = facts.versions[gap.version].bytes;
      for (Moment moment = gap.after + 1; moment < gap.before; ++moment) {
        ASSERT_EQ(evaluation.memory()[moment], memory[moment] - bytes);
      }
    }
  });
}

}  // namespace
}  // namespace coop
