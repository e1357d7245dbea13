#include "core/engine/loss.hpp"

#include <gtest/gtest.h>

namespace coop {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;

void lose(LossMeter& meter, Bytes bytes, double ns) {
  meter.came_back(bytes);
  meter.ran_again(ns);
  meter.replay_is_over();
}

TEST(LossMeter, NothingIsLost) {
  LossMeter meter;
  meter.ran(100);
  meter.evicted(kMiB);
  EXPECT_EQ(meter.loss(8 * kMiB).slowdown(), 1);
  EXPECT_EQ(meter.loss(8 * kMiB).more_to_halve, 0U);
}

TEST(LossMeter, BeforeAnythingHasRun) {
  const LossMeter meter;
  EXPECT_EQ(meter.loss(kMiB).slowdown(), 1);
}

// Of a long step, what is run again for one operator may take most of the time in which somebody looks.
TEST(LossMeter, OneReplayIsNotHeldAgainstAWholeStep) {
  LossMeter meter;
  meter.ran(1e9);
  lose(meter, kMiB, 6e9);
  EXPECT_DOUBLE_EQ(meter.loss(8 * kMiB).slowdown(), 7);
  EXPECT_DOUBLE_EQ(meter.loss(8 * kMiB, 3e9).slowdown(), 3);
}

TEST(LossMeter, HalfOfWhatIsAwayWhereAllCostsTheSame) {
  LossMeter meter;
  meter.ran(1e9);
  for (int i = 0; i < 64; ++i) meter.evicted(kMiB);
  for (int i = 0; i < 64; ++i) lose(meter, kMiB, 1e6);
  const Loss loss = meter.loss(8 * kMiB);
  EXPECT_DOUBLE_EQ(loss.slowdown(), 1.064);
  EXPECT_EQ(loss.more_to_halve, 32 * kMiB);
}

TEST(LossMeter, TheDearestFirst) {
  LossMeter meter;
  meter.ran(1e9);
  for (int i = 0; i < 64; ++i) meter.evicted(kMiB);
  for (int i = 0; i < 60; ++i) lose(meter, kMiB, 1e5);
  for (int i = 0; i < 4; ++i) lose(meter, kMiB, 1e7);  // 40 of the 46 ms
  const Bytes more = meter.loss(8 * kMiB).more_to_halve;
  EXPECT_GT(more, 2 * kMiB);
  EXPECT_LT(more, 3 * kMiB);
}

TEST(LossMeter, WhatDiesEvictedIsNotMissed) {
  LossMeter meter;
  meter.ran(1e9);
  for (int i = 0; i < 64; ++i) meter.evicted(kMiB);
  for (int i = 0; i < 32; ++i) meter.died(kMiB);
  for (int i = 0; i < 32; ++i) lose(meter, kMiB, 1e6);
  EXPECT_EQ(meter.loss(8 * kMiB).more_to_halve, 16 * kMiB);
}

TEST(LossMeter, MuchIsLostOverLittle) {
  LossMeter meter;
  meter.ran(1e9);
  meter.evicted(1024);
  lose(meter, 1024, 5e9);
  EXPECT_EQ(meter.loss(8 * kMiB).more_to_halve, 2 * kMiB) << "a quarter of the budget";
}

TEST(LossMeter, ANewWindowKnowsWhatIsAway) {
  LossMeter meter;
  for (int i = 0; i < 8; ++i) meter.evicted(kMiB);
  lose(meter, kMiB, 1e6);
  meter.begin_anew();
  meter.ran(1e9);
  EXPECT_EQ(meter.loss(8 * kMiB).replay_ns, 0);
  for (int i = 0; i < 7; ++i) lose(meter, kMiB, 1e6);
  EXPECT_EQ(meter.loss(8 * kMiB).more_to_halve, 7 * kMiB / 2);
}

}  // namespace
}  // namespace coop
