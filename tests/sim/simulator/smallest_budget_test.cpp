#include "sim/simulator/smallest_budget.hpp"

#include <gtest/gtest.h>

#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/trace/trace_builder.hpp"

namespace coop::sim {
namespace {

TEST(SmallestBudget, WorksAndALittleLessDoesNot) {
  const Trace trace = generate("residual", {.seed = 3, .steps = 2});
  for (const char* policy : {"coop", "dtr"}) {
    const auto found = find_smallest_budget(trace, {.policy = policy});
    ASSERT_TRUE(found.has_value()) << policy;
    EXPECT_TRUE(simulate(trace, {.policy = policy, .budget = found->bytes}).is_ok()) << policy;
    EXPECT_FALSE(simulate(trace, {.policy = policy, .budget = found->too_small}).is_ok()) << policy;
    EXPECT_LE(found->bytes - found->too_small, found->resolution);
    EXPECT_LT(found->bytes, measure_demand(trace).peak_bytes) << policy;
    ASSERT_TRUE(found->tightest.has_value());
    EXPECT_EQ(found->tightest->memory.pool, found->too_small / kGrainBytes * kGrainBytes);
  }
}

TEST(SmallestBudget, OfATraceThatNeedsNothing) {
  const auto found = find_smallest_budget(TraceBuilder().finish(), {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->bytes, kGrainBytes);
  EXPECT_FALSE(found->tightest.has_value());
}

TEST(SmallestBudget, IsNoneWhereThePoolCannotBeLargeEnough) {
  TraceBuilder builder;
  builder.add_source(kMostBytes);
  builder.add_source(kMostBytes);
  EXPECT_FALSE(find_smallest_budget(builder.finish(), {}).has_value());
}

}  // namespace
}  // namespace coop::sim
