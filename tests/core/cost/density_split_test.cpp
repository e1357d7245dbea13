#include "core/cost/density_split.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/random_cases.hpp"

namespace coop {
namespace {

TEST(DensitySplit, BeforeAnythingIsKnownAllIsExpensive) {
  const DensitySplit split;
  EXPECT_FALSE(split.is_cheap(1, 1_GiB));
}

TEST(DensitySplit, OneKindAloneIsExpensive) {
  DensitySplit split;
  testing::Random random(5);
  for (int i = 0; i < 1000; ++i) split.observe(1000 * (0.8 + 0.4 * random.unit()), 1_MiB);
  EXPECT_FALSE(split.is_cheap(800, 1_MiB));
  EXPECT_FALSE(split.is_cheap(1200, 1_MiB));
}

TEST(DensitySplit, PartsTwoKindsHoweverFarApartAndHoweverMany) {
  for (const double ratio : {4.0, 10.0, 1000.0}) {
    for (const int expensive_in_ten : {1, 5, 9}) {
      DensitySplit split;
      testing::Random random(7);
      for (int i = 0; i < 1000; ++i) {
        const Bytes bytes = 1_MiB * (1 + random.below(64));
        const double spread = 0.9 + 0.2 * random.unit();
        const bool is_expensive = i % 10 < expensive_in_ten;
        split.observe(static_cast<double>(bytes) * spread * (is_expensive ? ratio : 1.0) * 1e-3,
                      bytes);
      }
      EXPECT_TRUE(split.is_cheap(1e-3 * 8_MiB, 8_MiB)) << ratio << " " << expensive_in_ten;
      EXPECT_FALSE(split.is_cheap(ratio * 1e-3 * 8_MiB, 8_MiB)) << ratio << " " << expensive_in_ten;
    }
  }
}

// Three kinds, of which the one in the middle belongs to either side: were the border to follow every balance between
// them, its blocks would lie on both sides of the pool.
TEST(DensitySplit, StaysWhereItIsForNextToNothing) {
  DensitySplit split;
  const auto run = [&](double cost, int times) {
    for (int i = 0; i < times; ++i) split.observe(cost, 1_MiB);
  };
  for (int i = 0; i < 64; ++i) {
    run(1e3, 11);
    run(8e3, 10);
    run(64e3, 10);
  }
  const bool middle_is_cheap = split.is_cheap(8e3, 1_MiB);
  for (int i = 0; i < 64; ++i) {
    run(64e3, 2);
    EXPECT_EQ(split.is_cheap(8e3, 1_MiB), middle_is_cheap);
    run(1e3, 2);
    EXPECT_EQ(split.is_cheap(8e3, 1_MiB), middle_is_cheap);
  }
  run(8e3, 2000);
  run(64e3, 4000);
  EXPECT_TRUE(split.is_cheap(8e3, 1_MiB)) << "by now it is clear";
}

TEST(DensitySplit, StrangeNumbersDoNoHarm) {
  DensitySplit split;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double cost : {0.0, -1.0, 1e300, kInfinity, std::nan("")}) split.observe(cost, 1);
  split.observe(1, 0);
  for (int i = 0; i < 100; ++i) {
    split.observe(1e3, 1_MiB);
    split.observe(1e6, 1_MiB);
  }
  EXPECT_TRUE(split.is_cheap(1e3, 1_MiB));
  EXPECT_FALSE(split.is_cheap(1e6, 1_MiB));
  EXPECT_TRUE(split.is_cheap(0, 1));
  EXPECT_FALSE(split.is_cheap(kInfinity, 1));
}

}  // namespace
}  // namespace coop
