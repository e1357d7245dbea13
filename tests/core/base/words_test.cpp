#include "core/base/words.hpp"

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace coop {
namespace {

constexpr std::array<std::string_view, 4> kKnown{"run", "sweep", "explain", "dtr"};
const std::string kAll = "there are run, sweep, explain, dtr";

TEST(Words, OneLetterIsWrongOrTwoHaveChangedPlaces) {
  for (const char* word : {"rnu", "ru", "runn", "rum", "un"}) {
    EXPECT_EQ(what_was_meant(word, kKnown), "did you mean run?") << word;
  }
  EXPECT_EQ(what_was_meant("swepe", kKnown), "did you mean sweep?");
  EXPECT_EQ(what_was_meant("explane", kKnown), "did you mean explain?");
  EXPECT_EQ(what_was_meant("dtrr", kKnown), "did you mean dtr?");
}

TEST(Words, WhatIsLikeNoneOfThemHasThemAll) {
  const std::string long_word(100'000, 'r');
  for (const std::string& word :
       {std::string(), std::string("walk"), std::string("oracle"), long_word}) {
    EXPECT_EQ(what_was_meant(word, kKnown), kAll) << word.substr(0, 20);
  }
  EXPECT_EQ(what_was_meant("run", {}), "there are ");
}

TEST(Words, OfSeveralTheClosestAndThenTheFirst) {
  constexpr std::array<std::string_view, 3> kAlike{"random-path", "random", "rando"};
  EXPECT_EQ(what_was_meant("randon", kAlike), "did you mean random?");
}

}  // namespace
}  // namespace coop
