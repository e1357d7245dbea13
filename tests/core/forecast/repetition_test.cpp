#include "core/forecast/repetition.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::Case;

// The number of elements after which the period was first found, 0 if never.
std::size_t found_after(const std::vector<std::uint64_t>& marks, std::uint64_t period) {
  Repetition repetition;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    repetition.add(i + 1, marks[i]);
    if (repetition.period() == period) return i + 1;
  }
  return 0;
}

TEST(Repetition, OfALoopIsFoundInItsSecondRound) {
  testing::for_each_case(testing::scaled(300), [](Case& one) {
    const auto length = static_cast<std::size_t>(one.random.between(20, 400));
    std::vector<std::uint64_t> marks;
    for (std::size_t i = 0; i < length; ++i) marks.push_back(one.random.next());
    std::vector<std::uint64_t> rounds;
    for (int round = 0; round < 2; ++round) rounds.insert(rounds.end(), marks.begin(), marks.end());
    const std::size_t found = found_after(rounds, length);
    EXPECT_GT(found, length);
    EXPECT_LE(found, length + std::max<std::size_t>(16, length / 3) + 4);
  });
}

TEST(Repetition, OneInTenMayBeAnother) {
  testing::for_each_case(testing::scaled(300), [](Case& one) {
    constexpr std::size_t kLength = 300;
    std::vector<std::uint64_t> marks;
    for (std::size_t i = 0; i < kLength; ++i) marks.push_back(one.random.next());
    std::vector<std::uint64_t> rounds;
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < kLength; ++i) {
        rounds.push_back(i % 30 == 0 ? one.random.next() : marks[i]);
      }
    }
    EXPECT_GT(found_after(rounds, kLength), kLength);
  });
}

TEST(Repetition, IsThatOfTheStepAndNotOfALoopInIt) {
  // A step of a hundred of which the last thirty are all the same: an optimizer that goes over parameters.
  Repetition repetition;
  std::uint64_t number = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      repetition.add(++number, i < 70 ? i : 1000);
      if (round < 2) continue;
      ASSERT_EQ(repetition.period(), 100U) << "at " << i;
    }
  }
}

TEST(Repetition, WhatNeverRepeatsHasNone) {
  testing::Random random(1);
  Repetition repetition;
  for (std::uint64_t i = 1; i < 5000; ++i) {
    repetition.add(i, random.next());
    ASSERT_EQ(repetition.period(), 0U);
    ASSERT_FALSE(repetition.earlier());
  }
}

TEST(Repetition, IsOverWhenSomethingElseBegins) {
  Repetition repetition;
  std::uint64_t number = 0;
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 50; ++i) repetition.add(++number, i);
  }
  EXPECT_EQ(repetition.period(), 50U);
  EXPECT_EQ(repetition.earlier(), number - 50);
  for (std::uint64_t i = 0; i < 100; ++i) repetition.add(++number, 1000 + i);
  EXPECT_EQ(repetition.period(), 0U);
  // And a loop of another length is found as well.
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 70; ++i) repetition.add(++number, 5000 + i);
  }
  EXPECT_EQ(repetition.period(), 70U);
}

}  // namespace
}  // namespace coop
