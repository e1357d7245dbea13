#include "core/pool/address_order.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "support/random_cases.hpp"

namespace coop {
namespace {

constexpr BlockFacts kHeld{.cost = 1, .last_use = 0, .is_fixed = false};

// Fills the order with blocks of one grain, numbered from the left.
void fill(AddressOrder& order) {
  for (BlockIndex block = 0; block < static_cast<BlockIndex>(order.total()); ++block) {
    const auto at = static_cast<Grains>(block);
    order.take(order.piece_at(at), {at, at + 1}, block, kHeld);
  }
  order.validate();
}

TEST(AddressOrder, BeginsAsOneHole) {
  AddressOrder order(100);
  order.validate();
  EXPECT_EQ(order.piece_count(), 1U);
  EXPECT_EQ(order.largest_hole(), 100);
  EXPECT_EQ(order.leftmost_hole(100).extent(), (Extent{0, 100}));
  EXPECT_FALSE(order.leftmost_hole(101));
  EXPECT_FALSE(order.rightmost_hole(101));
}

TEST(AddressOrder, TakesFromEitherEndAndFromTheMiddleOfAHole) {
  AddressOrder order(100);
  order.take(order.leftmost_hole(10), {0, 10}, 0, kHeld);
  order.take(order.rightmost_hole(20), {80, 100}, 1, kHeld);
  order.take(order.leftmost_hole(5), {40, 45}, 2, kHeld);
  order.validate();
  EXPECT_EQ(order.place_of(2).extent(), (Extent{40, 45}));
  EXPECT_EQ(order.leftmost_hole(31).extent(), (Extent{45, 80}));
  EXPECT_EQ(order.rightmost_hole(30).extent(), (Extent{45, 80}));
  order.take(order.leftmost_hole(30), {10, 40}, 3, kHeld);
  order.take(order.leftmost_hole(35), {45, 80}, 4, kHeld);
  EXPECT_EQ(order.largest_hole(), 0);
  EXPECT_FALSE(order.leftmost_hole(1));
  order.validate();
}

TEST(AddressOrder, ReleasedPiecesJoinTheirNeighboursAtOnce) {
  AddressOrder order(3);
  fill(order);
  EXPECT_EQ(order.release(0).hole, (Extent{0, 1}));
  EXPECT_EQ(order.release(2).hole, (Extent{2, 3}));
  const auto joined = order.release(1);
  EXPECT_EQ(joined.hole, (Extent{0, 3}));
  EXPECT_EQ(*joined.left, (Extent{0, 1}));
  EXPECT_EQ(*joined.right, (Extent{2, 3}));
  EXPECT_EQ(order.piece_count(), 1U);
  order.validate();
}

TEST(AddressOrder, JoinsAcrossChunks) {
  // Released from both sides, every piece at a chunk's border is at some time the last to go.
  for (BlockIndex last = 0; last < 300; ++last) {
    AddressOrder order(300);
    fill(order);
    for (BlockIndex block = 0; block < last; ++block) order.release(block);
    for (BlockIndex block = 299; block > last; --block) order.release(block);
    EXPECT_EQ(order.release(last).hole, (Extent{0, 300}));
    order.validate();
  }
}

TEST(AddressOrder, SlidesABlockOverTheHoleAtItsLeft) {
  for (BlockIndex block = 1; block + 1 < 300; ++block) {
    AddressOrder order(300);
    fill(order);
    order.release(block - 1);
    order.release(block + 1);
    const auto joined = order.slide_left(block);
    const auto at = static_cast<Grains>(block);
    EXPECT_EQ(order.place_of(block).extent(), (Extent{at - 1, at}));
    EXPECT_EQ(joined.hole, (Extent{at, at + 2}));
    EXPECT_EQ(order.largest_hole(), 2);
    order.validate();
  }
}

TEST(AddressOrder, StartsTheSearchWhereItIsTold) {
  AddressOrder order(10);
  fill(order);
  order.release(2);
  order.release(6);
  EXPECT_EQ(order.leftmost_hole(1, 0).extent().begin, 2);
  EXPECT_EQ(order.leftmost_hole(1, 2).extent().begin, 2);
  EXPECT_EQ(order.leftmost_hole(1, 3).extent().begin, 6);
  EXPECT_FALSE(order.leftmost_hole(1, 7));
  order.release(7);
  order.release(8);
  EXPECT_EQ(order.leftmost_hole(2, 7).extent(), (Extent{6, 9})) << "counted from 7 on";
  EXPECT_FALSE(order.leftmost_hole(3, 7));
  EXPECT_FALSE(order.leftmost_hole(1, 10));
}

// Earlier implementations scanned the pool on every free. Work is counted in pieces that are shifted or
// moved, which are all that a change touches besides the chunk it is in: it must not grow with the pool.
TEST(AddressOrder, AChangeShiftsAFewPiecesHoweverLargeThePool) {
  for (const Grains blocks : {1'000, 10'000, 100'000}) {
    constexpr Grains kSpan = 16;  // each block lies somewhere in its own span, with holes around it
    AddressOrder order(blocks * kSpan);
    testing::Random random(1);
    const auto take = [&](BlockIndex block) {
      const Grains from = static_cast<Grains>(block) * kSpan + random.between(1, 3);
      order.take(order.piece_at(from), {from, from + random.between(1, 10)}, block, kHeld);
    };
    for (BlockIndex block = 0; block < static_cast<BlockIndex>(blocks); ++block) take(block);
    order.validate();
    const std::uint64_t before = order.shifted_pieces();
    constexpr int kChanges = 20'000;
    for (int i = 0; i < kChanges; ++i) {
      const auto block = static_cast<BlockIndex>(random.below(static_cast<std::uint64_t>(blocks)));
      order.release(block);
      take(block);
    }
    order.validate();
    const std::uint64_t shifted = (order.shifted_pieces() - before) / kChanges;
    EXPECT_GE(shifted, 10U) << blocks;  // the test tests something
    EXPECT_LE(shifted, 3U * Chunk::kCapacity) << blocks;
  }
}

}  // namespace
}  // namespace coop
