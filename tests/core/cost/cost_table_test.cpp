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
  EXPECT_EQ(table.observe(1, 101), 101);
}

// The activations of four layers, each in memory that is new: gelu was taken for nine times as dear as it is.
TEST(CostTable, AWholeFirstStepOfSlowRunsIsForgottenInTheSecond) {
  CostTable table;
  for (int layer = 0; layer < 4; ++layer) EXPECT_EQ(table.observe(1, 4600), 4600);
  double cost = 0;
  for (const double time : {510.0, 500.0, 4600.0, 505.0}) cost = table.observe(1, time);
  EXPECT_EQ(cost, 505);
}

TEST(CostTable, OneRunThatWasFasterThanAllDoesNotStandForThem) {
  CostTable table;
  table.observe(1, 7);
  for (int i = 0; i < 7; ++i) table.observe(1, 100);
  EXPECT_EQ(table.observe(1, 100), 100);
}

TEST(CostTable, AfterAFewRunsItIsSettled) {
  CostTable table;
  for (std::size_t i = 0; i < CostTable::kRuns; ++i)
    table.observe(1, 100.0 + static_cast<double>(i));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(table.observe(1, 1), 103);
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
