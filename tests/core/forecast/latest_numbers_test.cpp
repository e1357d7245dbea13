#include "core/forecast/latest_numbers.hpp"

#include <unordered_map>

#include <gtest/gtest.h>

#include "core/base/split_mix.hpp"

namespace coop {
namespace {

TEST(LatestNumbers, SaysWhatAMarkHadBefore) {
  SplitMix random(3);
  LatestNumbers latest(10'000);
  std::unordered_map<std::uint64_t, std::uint64_t> like;
  for (std::uint64_t number = 0; number < 20'000; ++number) {
    const std::uint64_t mark = random.next() % 3000 << (random.next() % 2 == 0 ? 0U : 40U);
    const auto found = like.find(mark);
    const auto before = latest.replace(mark, number);
    ASSERT_EQ(before.has_value(), found != like.end()) << number;
    if (before) {
      ASSERT_EQ(*before, found->second);
    }
    like[mark] = number;
  }
}

TEST(LatestNumbers, ForgetsAllWhenThereAreTooMany) {
  LatestNumbers latest(100);
  for (std::uint64_t mark = 0; mark < 100; ++mark) EXPECT_FALSE(latest.replace(mark, mark));
  EXPECT_FALSE(latest.replace(5, 200));
  EXPECT_EQ(latest.replace(5, 201), 200U);
}

}  // namespace
}  // namespace coop
