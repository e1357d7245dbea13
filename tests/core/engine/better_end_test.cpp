#include "core/engine/better_end.hpp"

#include <gtest/gtest.h>

#include "core/engine/evicting_pool.hpp"
#include "core/policy/registry.hpp"
#include "support/layout.hpp"
#include "support/recording_owner.hpp"

namespace coop {
namespace {

using testing::evictable;
using testing::hole;
using testing::Layout;
using testing::pinned;
using testing::RecordingOwner;
using testing::stopped_clock;

constexpr double kNow = 100;

TEST(BetterEnd, WhatIsLeftOverLiesBesideTheCheaperNeighbour) {
  Layout layout({evictable(4, 2), evictable(5, 7), hole(3), evictable(4, 1)});
  EXPECT_FALSE(better_end(layout.pool(), layout.block(1), to_bytes(3), kNow));
  Layout other({evictable(4, 1), evictable(5, 7), hole(3), evictable(4, 1.5, 90)});
  EXPECT_EQ(better_end(other.pool(), other.block(1), to_bytes(3), kNow), to_bytes(7))
      << "the right one was used lately";
  EXPECT_FALSE(better_end(other.pool(), other.block(1), to_bytes(2), kNow)) << "too much is left";
}

TEST(BetterEnd, FromTheRightEndToTheLeft) {
  Layout layout({evictable(4, 2), hole(3), evictable(5, 7), evictable(4, 1)});
  EXPECT_EQ(better_end(layout.pool(), layout.block(2), to_bytes(3), kNow), to_bytes(4));
}

TEST(BetterEnd, WhatMayNotGoAndThePoolsEndsAreTheDearest) {
  Layout by_pinned({evictable(4, 1000), evictable(5, 7), hole(3), pinned(4)});
  EXPECT_EQ(better_end(by_pinned.pool(), by_pinned.block(1), to_bytes(3), kNow), to_bytes(7));
  Layout at_end({evictable(4, 1000), evictable(5, 7), hole(3)});
  EXPECT_EQ(better_end(at_end.pool(), at_end.block(1), to_bytes(3), kNow), to_bytes(7));
  Layout between({pinned(4), evictable(5, 7), hole(3)});
  EXPECT_FALSE(better_end(between.pool(), between.block(1), to_bytes(3), kNow)) << "no better";
}

// Three requests of 5 cost two blocks of 8, where each would have cost one: see Note [What is left over].
TEST(BetterEnd, WhatTwoVictimsLeaveServesAThirdRequest) {
  Layout layout({evictable(8, 1), evictable(8, 2), evictable(8, 3), pinned(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  for (int i = 0; i < 3; ++i) evicting.allocate({to_bytes(5), Placement::kCheap, kNow});
  EXPECT_EQ(evicting.stats().evictions, 2U);
  EXPECT_EQ(layout.pool().free_bytes(), to_bytes(1));
  layout.pool().validate();
}

// A gradient that comes later would lie behind it, in the middle of the pool.
TEST(BetterEnd, NotInTheHeadroomOfWhatLivesLong) {
  FakeBacking backing;
  Pool pool({.bytes = to_bytes(160), .fit = Fit::kFromEnds, .small_limit = 0}, backing);
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(pool, *policy, owner, stopped_clock);
  const auto place_of = [&](Grains size, Placement placement, double now) {
    const BlockId id = evicting.allocate({to_bytes(size), placement, now});
    if (placement == Placement::kExpensive) pool.set_evictable(id, 100 + now, now);
    return pool.info(id).offset;
  };
  EXPECT_EQ(place_of(20, Placement::kLongLived, 1), 0U);
  const Bytes headroom_ends = place_of(13, Placement::kExpensive, 2);
  for (int i = 1; i < 10; ++i) place_of(13, Placement::kExpensive, 2 + i);
  EXPECT_EQ(place_of(13, Placement::kExpensive, 12), headroom_ends) << "the oldest has gone";
  EXPECT_EQ(evicting.stats().evictions, 1U);
  EXPECT_EQ(place_of(8, Placement::kLongLived, 13), to_bytes(20));
}

}  // namespace
}  // namespace coop
