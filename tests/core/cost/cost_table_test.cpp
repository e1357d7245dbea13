#include "core/cost/cost_table.hpp"

#include <gtest/gtest.h>

namespace coop {
namespace {

TEST(CostTable, TheFirstTimeItIsWhatWasMeasured) {
  CostTable table;
  EXPECT_EQ(table.observe(1, 700), 700);
  EXPECT_EQ(table.observe(2, 30), 30);
}

TEST(CostTable, ASlowFirstRunAndAnInterruptedOneDoNotCount) {
  CostTable table;
  table.observe(1, 90'000);
  EXPECT_EQ(table.observe(1, 100), 100) << "of two the lower one";
  table.observe(1, 102);
  table.observe(1, 5'000'000);
  EXPECT_EQ(table.observe(1, 101), 102);
}

TEST(CostTable, AfterAFewRunsItIsSettled) {
  CostTable table;
  for (const double time : {100.0, 104.0, 101.0, 103.0, 102.0}) table.observe(1, time);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(table.observe(1, 1), 102);
}

TEST(CostTable, IsBounded) {
  CostTable table(10);
  for (std::uint64_t kind = 0; kind < 1000; ++kind) {
    EXPECT_EQ(table.observe(kind, 7), 7);
    EXPECT_LE(table.kinds(), 10U);
  }
  EXPECT_EQ(table.observe(999, 5), 5) << "what is there is not forgotten for itself";
}

}  // namespace
}  // namespace coop
