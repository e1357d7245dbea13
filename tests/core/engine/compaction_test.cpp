// Moving instead of evicting: Note [Moving instead of evicting] in core/engine/evicting_pool.cpp.
#include "core/engine/compaction.hpp"

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

constexpr double kNow = 1e6;

std::uint64_t stopped_clock() { return 0; }

Request request(Grains grains) { return {to_bytes(grains), Placement::kExpensive, kNow}; }

TEST(MovingInsteadOfEvicting, WhereEnoughIsFreeAndCopyingIsCheap) {
  Layout layout({hole(3), movable(2), hole(3), evictable(5, 1000)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  const BlockId block = evicting.allocate(request(6));
  EXPECT_EQ(layout.pool().info(block).offset, to_bytes(2));
  EXPECT_TRUE(owner.evictions.empty());
  ASSERT_EQ(owner.moves.size(), 1U);
  EXPECT_EQ(owner.moves[0].to, 0U);
  EXPECT_DOUBLE_EQ(evicting.stats().moving_ns, kCopyNsPerByte * static_cast<double>(to_bytes(2)));
  layout.pool().validate();
}

TEST(MovingInsteadOfEvicting, WhatCanBeRecomputedIsMovedLikeOthers) {
  Layout layout({hole(3), evictable(2, 3000), hole(3), pinned(1), evictable(6, 1000)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(6));
  EXPECT_TRUE(owner.evictions.empty());
  EXPECT_EQ(layout.pool().info(layout.block(1)).offset, 0U);
}

TEST(MovingInsteadOfEvicting, NotWhereCopyingIsNotMuchCheaper) {
  Layout layout({hole(3), movable(2), hole(3), evictable(5, 1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(6));
  EXPECT_EQ(owner.evictions, std::vector{layout.block(3)});
  EXPECT_TRUE(owner.moves.empty());
}

TEST(MovingInsteadOfEvicting, NotByPoliciesAsPublished) {
  for (const char* name : {"coop-paper", "dtr", "dte"}) {
    const auto policy = make_policy(name);
    Layout layout({hole(3), movable(2), hole(3), evictable(5, 1000)}, policy->traits().fit);
    RecordingOwner owner;
    EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
    evicting.allocate(request(6));
    EXPECT_EQ(owner.evictions, std::vector{layout.block(3)}) << name;
    EXPECT_TRUE(owner.moves.empty()) << name;
  }
}

// What a replay is about to read is dear; it lay between what was free and what could go, and went.
TEST(MovingInsteadOfEvicting, WhatIsDearIsMovedAndWhatIsCheapGoes) {
  Layout layout({hole(3), evictable(4, 1e9), evictable(3, 10), pinned(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  const BlockId block = evicting.allocate(request(6));
  EXPECT_EQ(owner.evictions, std::vector{layout.block(2)});
  EXPECT_EQ(layout.pool().info(layout.block(1)).offset, 0U);
  EXPECT_EQ(layout.pool().info(block).offset, to_bytes(4));
  layout.pool().validate();
}

// Whoever has written contents unseen knows their address.
TEST(MovingInsteadOfEvicting, WhatMustStayIsNotMoved) {
  class Keeper final : public BlockOwner {
   public:
    explicit Keeper(Layout& layout) : layout_(layout) {}
    void evict(BlockId id) override { evictions.push_back(id); }
    void relocate(BlockId /*id*/, Bytes /*from*/, Bytes /*to*/, Bytes /*bytes*/) override {
      has_moved = true;
    }
    bool keeps_some(std::span<const BlockId> blocks) noexcept override {
      bool has_kept = false;
      for (const BlockId block : blocks) {
        if (block != layout_.block(1)) continue;
        layout_.pool().set_tenure(block, Tenure::kStays);
        has_kept = true;
      }
      return has_kept;
    }
    std::vector<BlockId> evictions;
    bool has_moved = false;

   private:
    Layout& layout_;
  };
  Layout layout({hole(3), evictable(2, 3000), hole(3), pinned(1), evictable(6, 1000)});
  const auto policy = make_policy("coop");
  Keeper owner(layout);
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(6));
  EXPECT_FALSE(owner.has_moved);
  EXPECT_EQ(owner.evictions, std::vector{layout.block(4)});
}

TEST(Stretch, ABlockThatWasJustUsedCostsMore) {
  Layout layout({evictable(4, 10, kNow - 100), pinned(1), evictable(4, 20, kNow - 10000)});
  const auto cheapest = [&](const CompactionTerms& terms) {
    return find_stretch_to_compact(layout.pool(), 4, terms)->extent.begin;
  };
  EXPECT_EQ(cheapest({}), 0) << "by cost alone";
  EXPECT_EQ(cheapest({.usual_staleness = 1000, .now = kNow}), 5);
}

TEST(Stretch, EndsAtWhatMayNotMove) {
  Layout layout({hole(3), movable(1), pinned(1), hole(3), movable(1), hole(2)});
  const CompactionTerms moving{.dear = 0};
  EXPECT_FALSE(find_stretch_to_compact(layout.pool(), 6, moving));
  const auto stretch = find_stretch_to_compact(layout.pool(), 5, moving);
  ASSERT_TRUE(stretch);
  EXPECT_EQ(stretch->extent, (Extent{5, 11}));
  EXPECT_DOUBLE_EQ(stretch->cost, kCopyNsPerByte * static_cast<double>(to_bytes(1)));
}

// Is asked about no others than those that were there.
class OwnerOfKnownBlocks final : public BlockOwner {
 public:
  explicit OwnerOfKnownBlocks(const Pool& pool) : blocks_(pool.block_count()) {}
  void evict(BlockId) override {}
  void relocate(BlockId, Bytes, Bytes, Bytes) override {}
  [[nodiscard]] LargeBlock witness(BlockId id, const BlockInfo& info) const override {
    EXPECT_LT(id.index(), blocks_);
    return BlockOwner::witness(id, info);
  }

 private:
  std::size_t blocks_;
};

// See Note [Moving out] in core/engine/moving_out.cpp.

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
  OwnerOfKnownBlocks owner(layout.pool());
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate(request(6)), OutOfMemory);
  EXPECT_EQ(layout.pool().block_count(), 3U);
  EXPECT_NO_THROW(evicting.allocate(request(4)));
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

}  // namespace
}  // namespace coop
