// Random programs under a budget against what they compute without one.
#include <string>

#include <gtest/gtest.h>

#include "support/random_program.hpp"

namespace coop {
namespace {

using testing::Case;
using testing::ProgramCounts;
using testing::ProgramOptions;
using testing::RandomProgram;

TEST(EngineProperty, EveryProgramComputesWhatItWouldWithoutABudget) {
  const auto policies = known_policies();
  ProgramCounts total;
  std::uint64_t runs = 0;
  std::uint64_t evicted = 0;
  std::uint64_t deep = 0;
  const std::uint64_t cases = testing::scaled(10'000);
  testing::for_each_case(cases, [&](Case& one) {
    ProgramOptions options;
    options.operators = one.random.between(20, one.random.chance(0.1) ? 400 : 120);
    options.pool_bytes = to_bytes(one.random.between(30, 110));
    options.policy = policies[one.seed % policies.size()].name.data();
    options.is_stressed = one.random.chance(0.15);
    if (one.random.chance(0.3)) options.engine.most_hidden_calls = one.random.below(20);
    if (one.random.chance(0.3))
      options.engine.most_depth = static_cast<std::uint32_t>(one.random.between(1, 10));
    RandomProgram program(one, options);
    program.run();
    const ProgramCounts& counts = program.counts;
    ++runs;
    if (counts.evictions > 0 || options.is_stressed) ++evicted;
    if (counts.deepest >= 3) ++deep;
    total.replays += counts.replays;
    total.evictions += counts.evictions;
    total.out_of_memory += counts.out_of_memory;
    total.in_place += counts.in_place;
    total.overwritten += counts.overwritten;
    total.sources_written += counts.sources_written;
    total.random += counts.random;
    total.exported += counts.exported;
    total.copies_aside += counts.copies_aside;
    total.cuts += counts.cuts;
    total.moves += counts.moves;
  });
  if (testing::wanted_seed()) return;
  std::printf(
      "%llu programs: %llu evicted, %llu replayed three deep or more; %llu evictions, %llu "
      "replays, "
      "%llu times out of memory, %llu copies aside, %llu cuts, %llu moves\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(evicted),
      static_cast<unsigned long long>(deep), static_cast<unsigned long long>(total.evictions),
      static_cast<unsigned long long>(total.replays),
      static_cast<unsigned long long>(total.out_of_memory),
      static_cast<unsigned long long>(total.copies_aside),
      static_cast<unsigned long long>(total.cuts), static_cast<unsigned long long>(total.moves));
  // The test tests something.
  EXPECT_GE(evicted, runs / 2);
  EXPECT_GE(deep, runs / 5);
  EXPECT_GT(total.in_place, runs);
  EXPECT_GT(total.overwritten, runs / 2);
  EXPECT_GT(total.sources_written, runs / 2);
  EXPECT_GT(total.random, runs);
  EXPECT_GT(total.exported, runs / 10);
  EXPECT_GT(total.copies_aside, 0U);
  EXPECT_GT(total.cuts, runs / 10);
  EXPECT_GT(total.moves, 0U);
  EXPECT_GT(total.out_of_memory, 0U);
}

}  // namespace
}  // namespace coop
