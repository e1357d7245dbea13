// Second thoughts about drops: what they leave fits as before, and never costs more.
#include "core/plan/drop_search.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "core/plan/memory_profile.hpp"
#include "core/plan/superfluous_drops.hpp"
#include "support/step_builder.hpp"

namespace coop {
namespace {

using testing::Case;
using Detail = StepEvaluation::Detail;
using Stretch = MemoryProfile::Stretch;

constexpr std::uint32_t kNoLimit = 1'000'000;

TEST(MemoryProfile, SaysWhatAnArraySays) {
  testing::for_each_case(200, [](Case& one) {
    std::vector<Bytes> naive(1 + one.random.below(40));
    for (Bytes& bytes : naive) bytes = one.random.below(100);
    MemoryProfile profile(naive);
    for (int i = 0; i < 50; ++i) {
      const std::size_t from = one.random.below(naive.size() + 1);
      const Stretch stretch{from, from + one.random.below(naive.size() - from + 1)};
      const auto begin = naive.begin() + static_cast<std::ptrdiff_t>(stretch.from);
      const auto end = naive.begin() + static_cast<std::ptrdiff_t>(stretch.end);
      ASSERT_EQ(profile.most(stretch), begin == end ? 0 : *std::max_element(begin, end));
      const Bytes bytes = one.random.below(100);
      profile.add(stretch, bytes);
      std::for_each(begin, end, [&](Bytes& each) { each += bytes; });
      if (one.random.chance(0.5)) continue;
      profile.take(stretch, bytes);
      std::for_each(begin, end, [&](Bytes& each) { each -= bytes; });
    }
  });
}

// Two results of one call; the first is idle when the call runs again for the second. A drop of the first after that has
// nothing to go by: nobody touched it there, and a plan could not say when it goes.
TEST(Drops, WhatIsOnlyMadeASecondTimeDoesNotGo) {
  testing::StepBuilder step;
  const auto source = step.there(512);
  const auto first = step.call({.reads = {source}, .makes = {512, 512}});
  step.call({.reads = {source}, .makes = {512}});
  step.call({.reads = {first + 1}, .makes = {512}});
  step.release(first + 1);
  step.call({.reads = {source}, .makes = {512}});
  step.release(first);
  const StepFacts facts(step.record(), 0, kNoLimit);
  Drops drops(facts.versions.size());
  drops.add({.version = 1, .after = 0});
  StepEvaluation evaluation(facts);
  ASSERT_TRUE(evaluation.run(drops, Detail::kMemory));
  const std::vector<Bytes> memory = evaluation.memory();
  drops.add({.version = 0, .after = 2});
  ASSERT_TRUE(evaluation.run(drops, Detail::kGaps));
  EXPECT_EQ(evaluation.memory(), memory);
  for (const Gap& gap : evaluation.gaps()) EXPECT_EQ(gap.is_dropped, gap.version == 1);
}

// What a network keeps may hang on a chain that it has let go of, from its first layer on: a copy in another type of
// each layer's input, say. It goes all the same where nothing else can.
TEST(Drops, WhatHangsOnALongChainCanGo) {
  testing::StepBuilder step;
  testing::StepBuilder::Storage link = step.there(512);
  for (int layer = 0; layer < 500; ++layer) {
    const auto next = step.call({.reads = {link}, .makes = {512}});
    if (layer > 0) step.release(link);
    link = next;
  }
  const auto copy = step.call({.reads = {link}, .makes = {4096}});
  step.release(link);
  const auto large = step.call({.reads = {}, .makes = {8192}});
  step.release(large);
  step.call({.reads = {copy}, .makes = {512}});
  step.release(copy);
  const StepFacts facts(step.record(), 0, kNoLimit);
  DropSearch search(facts, 512 + 8192 + 512);
  ASSERT_TRUE(search.fit());
  EXPECT_EQ(search.evaluation().overhead(), 501);
}

Bytes peak_of(const StepFacts& facts) {
  StepEvaluation evaluation(facts);
  return evaluation.run(Drops(facts.versions.size()), Detail::kMemory) ? evaluation.most() : 0;
}

TEST(SecondThoughts, FitAndDoNotCostMore) {
  int better = 0;
  testing::for_each_case(300, [&](Case& one) {
    const StepRecord step = testing::random_training_step(one.random, one.random.between(4, 40));
    const StepFacts facts(step, 0, kNoLimit);
    const Bytes budget = peak_of(facts) * static_cast<Bytes>(one.random.between(50, 90)) / 100;
    DropSearch search(facts, budget);
    if (!search.fit()) return;
    const double before = search.evaluation().overhead();
    search.improve();
    ASSERT_TRUE(search.evaluation().run(search.drops(), Detail::kMemory));
    EXPECT_LE(search.evaluation().most(), budget);
    EXPECT_LE(search.evaluation().overhead(), before);
    better += search.evaluation().overhead() < before ? 1 : 0;
  });
  if (!testing::wanted_seed()) {
    EXPECT_GT(better, 30);
  }
}

// Something is dropped in a budget that does not need it.
TEST(SuperfluousDrops, AreAllTakenBackWhereThereIsRoom) {
  testing::for_each_case(100, [](Case& one) {
    const StepRecord step = testing::random_training_step(one.random, one.random.between(4, 20));
    const StepFacts facts(step, 0, kNoLimit);
    StepEvaluation evaluation(facts);
    Drops drops(facts.versions.size());
    ASSERT_TRUE(evaluation.run(drops, Detail::kGaps));
    const Gap* dropped = nullptr;
    for (const Gap& gap : evaluation.gaps()) {
      if (!gap.is_last) dropped = &gap;
    }
    if (dropped == nullptr) return;
    const Drop drop{dropped->version, dropped->from};
    drops.add(drop);
    ASSERT_TRUE(evaluation.run(drops, Detail::kGaps));
    SuperfluousDrops none(facts, 0);
    EXPECT_TRUE(none.find(evaluation).empty());
    SuperfluousDrops all(facts, 2 * peak_of(facts));
    const std::vector<Drop>& found = all.find(evaluation);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].version, drop.version);
    EXPECT_EQ(found[0].after, drop.after);
  });
}

}  // namespace
}  // namespace coop
