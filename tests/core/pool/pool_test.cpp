#include "core/pool/pool.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/errors.hpp"

namespace coop {
namespace {

constexpr Bytes kG = kGrainBytes;

class PoolTest : public ::testing::Test {
 protected:
  static PoolOptions without_small(Bytes bytes, Fit fit = Fit::kFromEnds) {
    return {.bytes = bytes, .fit = fit, .small_limit = 0};
  }
  FakeBacking backing_;
};

TEST_F(PoolTest, PlacesEachKindAtItsEnd) {
  Pool pool(without_small(160 * kG), backing_);  // with headroom of 10 for what lives long
  const BlockId weights = *pool.allocate(10 * kG, Placement::kLongLived);
  const BlockId product = *pool.allocate(10 * kG, Placement::kExpensive);
  const BlockId relu = *pool.allocate(10 * kG, Placement::kCheap);
  const BlockId norm = *pool.allocate(10 * kG, Placement::kCheap);
  const BlockId momentum = *pool.allocate(10 * kG, Placement::kLongLived);
  EXPECT_EQ(pool.info(weights).offset, 0U);
  EXPECT_EQ(pool.info(product).offset, 20 * kG);
  EXPECT_EQ(pool.info(relu).offset, 150 * kG);
  EXPECT_EQ(pool.info(norm).offset, 140 * kG);
  EXPECT_EQ(pool.info(momentum).offset, 10 * kG);
  EXPECT_EQ(pool.address(product) - pool.address(weights), 20 * static_cast<int>(kG));
  EXPECT_EQ(pool.held_bytes(), 50 * kG);
  EXPECT_EQ(pool.free_bytes(), 110 * kG);
}

TEST_F(PoolTest, TheHeadroomOfLongLivedBlocksIsAPreferenceAndNoReserve) {
  Pool pool(without_small(160 * kG), backing_);
  EXPECT_EQ(pool.info(*pool.allocate(150 * kG, Placement::kExpensive)).offset, 10 * kG);
  EXPECT_EQ(pool.info(*pool.allocate(10 * kG, Placement::kExpensive)).offset, 0U);
  EXPECT_EQ(pool.free_bytes(), 0U);
}

TEST_F(PoolTest, LongLivedBlocksPackAtTheLeft) {
  Pool pool(without_small(160 * kG), backing_);
  const BlockId first = *pool.allocate(10 * kG, Placement::kLongLived);
  const BlockId second = *pool.allocate(10 * kG, Placement::kLongLived);
  EXPECT_EQ(pool.info(second).offset, 10 * kG);
  // A short-lived block leaves the hole among the long-lived ones to the next of them ...
  ASSERT_TRUE(pool.free(first));
  ASSERT_TRUE(pool.allocate(130 * kG, Placement::kExpensive));
  const BlockId product = *pool.allocate(10 * kG, Placement::kExpensive);
  EXPECT_EQ(pool.info(product).offset, 20 * kG);
  const BlockId third = *pool.allocate(10 * kG, Placement::kLongLived);
  EXPECT_EQ(pool.info(third).offset, 0U);
  // ... but takes it rather than fail.
  ASSERT_TRUE(pool.free(third));
  EXPECT_EQ(pool.info(*pool.allocate(10 * kG, Placement::kExpensive)).offset, 0U);
}

TEST_F(PoolTest, TheLongLivedEndRetractsWithItsBlocks) {
  Pool pool(without_small(160 * kG), backing_);
  const BlockId first = *pool.allocate(10 * kG, Placement::kLongLived);
  const BlockId second = *pool.allocate(10 * kG, Placement::kLongLived);
  ASSERT_TRUE(pool.free(second));
  EXPECT_EQ(pool.info(*pool.allocate(5 * kG, Placement::kExpensive)).offset, 20 * kG);
  EXPECT_TRUE(pool.contains(first));
}

TEST_F(PoolTest, BestFitTakesTheSmallestHoleThatServes) {
  Pool pool(without_small(100 * kG, Fit::kBest), backing_);
  std::vector<BlockId> blocks;
  for (const Bytes size : {30U, 10U, 20U, 10U, 15U, 15U}) {
    blocks.push_back(*pool.allocate(size * kG, Placement::kExpensive));
  }
  ASSERT_TRUE(pool.free(blocks[0]));  // [0, 30)
  ASSERT_TRUE(pool.free(blocks[2]));  // [40, 60)
  ASSERT_TRUE(pool.free(blocks[4]));  // [70, 85)
  EXPECT_EQ(pool.info(*pool.allocate(12 * kG, Placement::kExpensive)).offset, 70 * kG);
  EXPECT_EQ(pool.info(*pool.allocate(12 * kG, Placement::kCheap)).offset, 48 * kG);
  EXPECT_EQ(pool.info(*pool.allocate(12 * kG, Placement::kExpensive)).offset, 0U);
}

// The left end of a block taken from the right must be aligned even if the pool's end is not.
TEST_F(PoolTest, EveryBlockIsAlignedInAPoolOfAnySize) {
  for (const Bytes bytes : {512U, 513U, 1000U, 5000U, 123'457U}) {
    Pool pool(without_small(bytes), backing_);
    EXPECT_EQ(pool.bytes(), bytes / 512 * 512);
    for (const Placement placement : {Placement::kCheap, Placement::kExpensive}) {
      const auto block = pool.allocate(1, placement);
      ASSERT_TRUE(block || pool.free_bytes() == 0);
      if (block) {
        EXPECT_EQ(pool.info(*block).offset % 512, 0U);
        EXPECT_EQ(pool.info(*block).bytes, 512U);
        EXPECT_EQ(pool.info(*block).requested_bytes, 1U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.address(*block)) % 512, 0U);
      }
    }
  }
}

TEST_F(PoolTest, RefusesSizesThatMakeNoSense) {
  EXPECT_THROW(Pool(without_small(0), backing_), InvalidArgument);
  EXPECT_THROW(Pool(without_small(511), backing_), InvalidArgument);
  EXPECT_THROW(Pool(without_small(kMaxPoolBytes + 1), backing_), InvalidArgument);
  EXPECT_THROW(Pool(without_small(~Bytes{0}), backing_), InvalidArgument);
  EXPECT_NO_THROW(Pool(without_small(kMaxPoolBytes), backing_));

  Pool pool(without_small(10 * kG), backing_);
  EXPECT_THROW(pool.allocate(0, Placement::kCheap), InvalidArgument);
  EXPECT_THROW(pool.allocate(10 * kG + 1, Placement::kCheap), InvalidArgument);
  EXPECT_THROW(pool.allocate(~Bytes{0}, Placement::kCheap), InvalidArgument);
  EXPECT_EQ(pool.free_bytes(), 10 * kG);
  EXPECT_TRUE(pool.allocate(10 * kG, Placement::kCheap));
  EXPECT_FALSE(pool.allocate(1, Placement::kCheap));
}

TEST_F(PoolTest, KnowsStaleAndUnknownNames) {
  Pool pool(without_small(10 * kG), backing_);
  const BlockId block = *pool.allocate(kG, Placement::kCheap);
  EXPECT_FALSE(pool.free(BlockId(99, 0)));
  EXPECT_FALSE(pool.free({}));
  EXPECT_TRUE(pool.free(block));
  EXPECT_FALSE(pool.free(block)) << "a double free";
  const BlockId next = *pool.allocate(kG, Placement::kCheap);
  EXPECT_FALSE(pool.free(block)) << "a double free after the place was reused";
  EXPECT_TRUE(pool.contains(next));
  EXPECT_FALSE(pool.contains(block));
  EXPECT_THROW(static_cast<void>(pool.info(block)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(pool.address(block)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(pool.slide_target(block)), InvalidArgument);
  EXPECT_THROW(pool.pin(block), InvalidArgument);
  EXPECT_THROW(pool.unpin(block), InvalidArgument);
  EXPECT_THROW(pool.touch(block, 1), InvalidArgument);
  EXPECT_THROW(pool.set_evictable(block, 1, 1), InvalidArgument);
  EXPECT_THROW(pool.set_tenure(block, Tenure::kMovable), InvalidArgument);
  EXPECT_EQ(pool.held_bytes(), kG);
  pool.validate();
}

TEST_F(PoolTest, RefusesCostsThatAreNoNumbers) {
  Pool pool(without_small(10 * kG), backing_);
  const BlockId block = *pool.allocate(kG, Placement::kCheap);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double cost : {kInfinity, kNaN, -1.0}) {
    EXPECT_THROW(pool.set_evictable(block, cost, 0), InvalidArgument);
  }
  EXPECT_THROW(pool.set_evictable(block, 1, kNaN), InvalidArgument);
  EXPECT_THROW(pool.touch(block, kNaN), InvalidArgument);
  EXPECT_THROW(pool.set_tenure(block, Tenure::kEvictable), InvalidArgument) << "no cost is known";
  EXPECT_EQ(pool.info(block).tenure, Tenure::kStays);
  pool.set_evictable(block, 0, 0);
  EXPECT_GT(pool.info(block).cost, 0);
  pool.set_evictable(block, 1e300, 0);
  EXPECT_TRUE(std::isfinite(pool.info(block).cost));
}

TEST_F(PoolTest, PinsNest) {
  Pool pool(without_small(10 * kG), backing_);
  const BlockId block = *pool.allocate(kG, Placement::kExpensive);
  pool.set_evictable(block, 5, 7);
  const auto is_fixed = [&] { return pool.order().place_of(block.index()).chunk->is_fixed(0); };
  EXPECT_FALSE(is_fixed());
  pool.pin(block);
  pool.pin(block);
  pool.unpin(block);
  EXPECT_TRUE(is_fixed());
  pool.unpin(block);
  EXPECT_FALSE(is_fixed());
  EXPECT_THROW(pool.unpin(block), InvalidArgument);
  EXPECT_EQ(pool.info(block).cost, 5);
  EXPECT_EQ(pool.info(block).last_use, 7);
}

TEST_F(PoolTest, KnowsWhatRoomThereCouldBe) {
  Pool pool({.bytes = 100 * kG, .small_limit = 2 * kG}, backing_);
  const BlockId block = *pool.allocate(10 * kG, Placement::kExpensive);
  const BlockId small = *pool.allocate(kG, Placement::kExpensive);
  EXPECT_EQ(pool.room_bytes(), 89 * kG);
  pool.set_evictable(block, 5, 7);
  pool.set_evictable(small, 5, 7);
  EXPECT_EQ(pool.room_bytes(), 99 * kG) << "small ones stay";
  pool.pin(block);
  EXPECT_EQ(pool.room_bytes(), 99 * kG);
  pool.set_tenure(block, Tenure::kMovable);
  EXPECT_EQ(pool.room_bytes(), 89 * kG);
  pool.set_evictable(block, 5, 7);
  EXPECT_TRUE(pool.free(block));
  EXPECT_EQ(pool.room_bytes(), 99 * kG);
  pool.validate();
}

TEST_F(PoolTest, OnlyWhatMayMoveSlides) {
  Pool pool(without_small(10 * kG), backing_);
  const BlockId first = *pool.allocate(2 * kG, Placement::kExpensive);
  const BlockId second = *pool.allocate(3 * kG, Placement::kExpensive);
  pool.set_tenure(second, Tenure::kMovable);
  EXPECT_FALSE(pool.slide_target(second)) << "nothing is free at its left";
  ASSERT_TRUE(pool.free(first));
  pool.pin(second);
  EXPECT_FALSE(pool.slide_target(second));
  EXPECT_THROW(pool.slide_left(second), InvalidArgument);
  pool.unpin(second);
  pool.set_tenure(second, Tenure::kStays);
  EXPECT_FALSE(pool.slide_target(second));
  pool.set_tenure(second, Tenure::kMovable);
  EXPECT_EQ(*pool.slide_target(second), 0U);
  EXPECT_EQ(pool.slide_left(second), 0U);
  EXPECT_EQ(pool.info(second).offset, 0U);
  EXPECT_EQ(pool.info(second).bytes, 3 * kG);
  EXPECT_EQ(pool.largest_hole_bytes(), 7 * kG);
}

TEST_F(PoolTest, ANewBlockKnowsNothingOfTheOneBeforeIt) {
  Pool pool(without_small(10 * kG), backing_);
  const BlockId first = *pool.allocate(kG, Placement::kCheap);
  pool.set_evictable(first, 5, 777);
  ASSERT_TRUE(pool.free(first));
  const BlockInfo info = pool.info(*pool.allocate(kG, Placement::kCheap));
  EXPECT_EQ(info.last_use, 0);
  EXPECT_EQ(info.cost, 0);
  EXPECT_EQ(info.tenure, Tenure::kStays);
}

TEST_F(PoolTest, TheLargestPoolThereIs) {
  // Positions near 2^31 must not overflow.
  Pool pool(without_small(kMaxPoolBytes), backing_);
  const BlockId most = *pool.allocate(kMaxPoolBytes - 1000 * kG, Placement::kLongLived);
  const BlockId product = *pool.allocate(kG, Placement::kExpensive);
  EXPECT_EQ(pool.info(product).offset, pool.info(most).bytes);
  EXPECT_EQ(pool.info(*pool.allocate(kG, Placement::kCheap)).offset, kMaxPoolBytes - kG);
  pool.validate();
}

TEST_F(PoolTest, WhatIsCalledSmallMustBeSmall) {
  EXPECT_THROW(Pool({.bytes = 1_GiB, .small_limit = 1_MiB}, backing_), InvalidArgument);
  EXPECT_THROW(Pool({.bytes = 1_GiB, .small_limit = ~Bytes{0}}, backing_), InvalidArgument);
  EXPECT_NO_THROW(Pool({.bytes = 1_KiB, .small_limit = 64_KiB}, backing_));
}

TEST_F(PoolTest, TakesItsMemoryOnceAndGivesItBack) {
  class Counting final : public Backing {
   public:
    std::byte* acquire(Bytes bytes) override {
      acquired += bytes;
      return host.acquire(bytes);
    }
    void give_back(std::byte* memory, Bytes bytes) noexcept override {
      acquired -= bytes;
      host.give_back(memory, bytes);
    }
    HostBacking host;
    Bytes acquired = 0;
  } backing;
  {
    Pool pool(without_small(100'000), backing);
    EXPECT_EQ(backing.acquired, 99'840U);
    const BlockId block = *pool.allocate(1000, Placement::kCheap);
    pool.address(block)[999] = std::byte{1};
  }
  EXPECT_EQ(backing.acquired, 0U);
}

TEST_F(PoolTest, RefusesMemoryThatIsNotAligned) {
  class Crooked final : public Backing {
   public:
    std::byte* acquire(Bytes /*bytes*/) override { return FakeBacking().acquire(0) + 8; }
    void give_back(std::byte* /*memory*/, Bytes /*bytes*/) noexcept override { given_back = true; }
    bool given_back = false;
  } backing;
  EXPECT_THROW(Pool(without_small(100'000), backing), InvalidArgument);
  EXPECT_TRUE(backing.given_back);
}

}  // namespace
}  // namespace coop
