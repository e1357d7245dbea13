#include "core/cost/density_histogram.hpp"

#include <gtest/gtest.h>

namespace coop {
namespace {

TEST(DensityHistogram, NothingHasNoQuantile) { EXPECT_EQ(DensityHistogram().quantile(0.25), 0); }

// To a quarter octave, from above.
TEST(DensityHistogram, AQuantileIsByBytes) {
  DensityHistogram histogram;
  for (int i = 0; i < 30; ++i) histogram.add(0.3 * 1_MiB, 1_MiB);
  histogram.add(7.0 * 70_MiB, 70_MiB);
  for (const double share : {0.01, 0.25, 0.29}) {
    EXPECT_GT(histogram.quantile(share), 0.3) << share;
    EXPECT_LE(histogram.quantile(share), 0.3 * 1.25) << share;
  }
  for (const double share : {0.31, 0.5, 1.0}) {
    EXPECT_GT(histogram.quantile(share), 7.0) << share;
    EXPECT_LE(histogram.quantile(share), 7.0 * 1.25) << share;
  }
}

TEST(DensityHistogram, WhatIsOutOfRangeCountsAtItsEnds) {
  DensityHistogram histogram;
  histogram.add(0, 1_GiB);
  EXPECT_LT(histogram.quantile(0.5), 1e-5);
  histogram.add(1e300, 8_GiB);
  EXPECT_GT(histogram.quantile(0.5), 1e5);
}

}  // namespace
}  // namespace coop
