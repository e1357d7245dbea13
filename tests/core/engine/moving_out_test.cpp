// Note [Moving out] in core/engine/moving_out.cpp.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/evicting_pool.hpp"
#include "support/layout.hpp"
#include "support/recording_owner.hpp"

namespace coop {
namespace {

using testing::evictable;
using testing::hole;
using testing::Layout;
using testing::movable;
using testing::pinned;
using testing::RecordingOwner;
using testing::request;
using testing::stopped_clock;

// Is asked about no others than those that were there.
class OwnerOfKnownBlocks final : public BlockOwner {
 public:
  explicit OwnerOfKnownBlocks(std::vector<BlockId> blocks) : blocks_(std::move(blocks)) {}
  void evict(BlockId) override {}
  void relocate(BlockId, Bytes, Bytes, Bytes) override {}
  [[nodiscard]] LargeBlock witness(BlockId id, const BlockInfo& info) const override {
    EXPECT_NE(std::find(blocks_.begin(), blocks_.end(), id), blocks_.end());
    return BlockOwner::witness(id, info);
  }

 private:
  std::vector<BlockId> blocks_;
};

TEST(MovingOut, ToTheOtherSideOfWhatMayNotMove) {
  Layout layout({movable(2), evictable(4, 10), pinned(3), evictable(3, 10), movable(1), hole(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  const BlockId block = evicting.allocate(request(6));
  EXPECT_EQ(layout.pool().info(block).offset, 0U);
  EXPECT_GE(layout.pool().info(layout.block(0)).offset, to_bytes(9));
  EXPECT_EQ(layout.pool().info(layout.block(2)).offset, to_bytes(6));
  EXPECT_EQ(layout.pool().block_count(), 4U);
  layout.pool().validate();
}

TEST(MovingOut, NoMoreThanMust) {
  Layout layout(
      {movable(1), movable(3), movable(2), evictable(3, 10), pinned(3), evictable(5, 10)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(6));
  ASSERT_FALSE(owner.moves.empty());
  EXPECT_GE(layout.pool().info(layout.block(1)).offset, to_bytes(12));  // the 3 that were lacking
  EXPECT_EQ(layout.pool().info(layout.block(0)).offset, 0U);
  EXPECT_EQ(layout.pool().info(layout.block(2)).offset, to_bytes(1));
  layout.pool().validate();
}

TEST(MovingOut, WhereThereIsNoRoomElsewhereNothingIsLost) {
  Layout layout({movable(2), evictable(4, 10), pinned(1), hole(1), pinned(1), hole(1)});
  const auto policy = make_policy("coop");
  OwnerOfKnownBlocks owner({layout.block(0), layout.block(2), layout.block(4)});
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate(request(6)), OutOfMemory);
  EXPECT_EQ(layout.pool().block_count(), 3U);
  EXPECT_NO_THROW(evicting.allocate(request(4)));
  layout.pool().validate();
}

// Before the first planned step everything is pushed to the left, and over what may not move.
TEST(MovingAllLeft, WhatMayNotMoveLeavesNoHoleThatOthersFill) {
  Layout layout({hole(4), pinned(1), movable(1), hole(2), movable(3), movable(5), hole(3)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.move_all_left();
  EXPECT_EQ(layout.pool().info(layout.block(4)).offset, 0U);  // the largest that fits, then others
  EXPECT_EQ(layout.pool().info(layout.block(2)).offset, to_bytes(3));
  EXPECT_EQ(layout.pool().info(layout.block(1)).offset, to_bytes(4));
  EXPECT_EQ(layout.pool().info(layout.block(5)).offset, to_bytes(5));
  EXPECT_EQ(layout.pool().block_count(), 4U);
  layout.pool().validate();
}

TEST(MovingOut, SeveralIfOneIsNotEnough) {
  Layout layout({movable(2), movable(2), evictable(2, 10), pinned(1), hole(2), pinned(1), hole(2)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_EQ(layout.pool().info(evicting.allocate(request(6))).offset, 0U);
  layout.pool().validate();
}

// Finds a block that was written unseen, and keeps it: what was there only to make it again goes, and that is
// what was to move.
class OwnerWhoNeedsItNoMore final : public BlockOwner {
 public:
  OwnerWhoNeedsItNoMore(Pool& pool, BlockId goes, BlockId victim)
      : pool_(pool), goes_(goes), victim_(victim) {}
  void evict(BlockId) override {}
  void relocate(BlockId, Bytes, Bytes, Bytes) override {}
  bool keeps_some(std::span<const BlockId> victims) noexcept override {
    return std::find(victims.begin(), victims.end(), victim_) != victims.end() && pool_.free(goes_);
  }

 private:
  Pool& pool_;
  BlockId goes_;
  BlockId victim_;
};

TEST(MovingOut, WhatIsToMoveMayGoMeanwhile) {
  Layout layout({movable(2), evictable(4, 10), pinned(3), evictable(3, 10)});
  const auto policy = make_policy("coop");
  OwnerWhoNeedsItNoMore owner(layout.pool(), layout.block(0), layout.block(3));
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_EQ(layout.pool().info(evicting.allocate(request(6))).offset, 0U);
  EXPECT_FALSE(layout.pool().contains(layout.block(0)));
  EXPECT_EQ(layout.pool().block_count(), 3U) << "the victim was not needed any more";
  layout.pool().validate();
}

}  // namespace
}  // namespace coop
