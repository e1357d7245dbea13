#include "core/engine/moving_out.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/evicting_pool.hpp"
#include "support/layout.hpp"
#include "support/random_cases.hpp"
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
  OwnerOfKnownBlocks owner({layout.block(0), layout.block(1), layout.block(2), layout.block(4)});
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate(request(6)), OutOfMemory);
  EXPECT_EQ(layout.pool().block_count(), 4U);
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

// A gradient that waits for another branch takes the whole step with it when it goes. ResNet-50 on the CPU ran its
// backward pass again for that, several times in a step, while a sixth of the pool was free on either side of what ran.
TEST(MovingOut, WhatIsDearMovesWhereVictimsWouldBeDear) {
  constexpr double kWholeStep = 1e12;
  Layout layout({hole(2), evictable(4, kWholeStep), pinned(3), hole(4), pinned(1), hole(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_EQ(layout.pool().info(evicting.allocate(request(6))).offset, 0U);
  EXPECT_TRUE(owner.evictions.empty());
  EXPECT_EQ(layout.pool().info(layout.block(1)).offset, to_bytes(9));
  EXPECT_DOUBLE_EQ(evicting.stats().moving_ns, kCopyNsPerByte * static_cast<double>(to_bytes(4)));
  layout.pool().validate();
}

TEST(MovingOut, WhatIsCheapGoesOnTheWay) {
  constexpr double kWholeStep = 1e12;
  Layout layout(
      {hole(2), evictable(4, kWholeStep), pinned(3), evictable(4, 10), pinned(1), hole(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_EQ(layout.pool().info(evicting.allocate(request(6))).offset, 0U);
  EXPECT_EQ(owner.evictions, std::vector{layout.block(3)});
  EXPECT_EQ(layout.pool().info(layout.block(1)).offset, to_bytes(9));
}

TEST(MovingOut, NotWhereVictimsAreCheap) {
  Layout layout({hole(2), evictable(4, 1), pinned(3), hole(4)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(6));
  EXPECT_EQ(owner.evictions, std::vector{layout.block(1)});
  EXPECT_TRUE(owner.moves.empty());
}

// What is dearest of those that would go moves, too: to the last bit, whenever it was used.
TEST(MovingOut, WhoeverIsAsDearAsTheDearestMoves) {
  testing::for_each_case(testing::scaled(2000), [&](testing::Case& one) {
    testing::Random& random = one.random;
    const auto used = [&] { return 1e6 * random.unit(); };
    Layout layout({hole(2), evictable(4, 1e12, used()), pinned(3), hole(1),
                   evictable(1, 1e8 * (1 + random.unit()), used()), hole(3), pinned(1), hole(1)});
    const auto policy = make_policy("coop");
    RecordingOwner owner;
    EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
    evicting.allocate(request(6));
    EXPECT_TRUE(owner.evictions.empty());
  });
}

// Contents that move with their blocks, grain by grain, as bytes would.
class OwnerOfContents final : public BlockOwner {
 public:
  explicit OwnerOfContents(Pool& pool)
      : pool_(pool), grains_(static_cast<std::size_t>(to_grains(pool.bytes()))) {}
  void fill(BlockId id) {
    const BlockInfo block = pool_.info(id);
    const Grains begin = to_grains(block.offset);
    for (Grains i = begin; i < begin + to_grains(block.bytes); ++i) at(i) = id;
  }
  void evict(BlockId id) override { evictions.push_back(id); }
  void relocate(BlockId, Bytes from, Bytes to, Bytes bytes) override {
    for (Grains i = 0; i < to_grains(bytes); ++i) {  // to the left they may overlap
      at(to_grains(to) + i) = at(to_grains(from) + i);
    }
  }
  [[nodiscard]] bool holds(BlockId id) {
    const BlockInfo block = pool_.info(id);
    const Grains begin = to_grains(block.offset);
    for (Grains i = begin; i < begin + to_grains(block.bytes); ++i) {
      if (at(i) != id) return false;
    }
    return true;
  }
  std::vector<BlockId> evictions;

 private:
  BlockId& at(Grains grain) { return grains_[static_cast<std::size_t>(grain)]; }
  Pool& pool_;
  std::vector<BlockId> grains_;
};

// Whatever lies where: a request is served or nothing is lost but what may go, what stays has its contents, and what may
// not move has not moved.
TEST(MovingOut, KeepsAllContents) {
  int served = 0;
  int refused = 0;
  int moved = 0;
  testing::for_each_case(testing::scaled(20000), [&](testing::Case& one) {
    testing::Random& random = one.random;
    std::vector<testing::PieceSpec> pieces;
    for (int i = random.between(1, 40); i > 0; --i) {
      const Grains grains = random.between(1, 9);
      const double dearness = random.chance(0.3) ? 1e12 : 10;
      switch (random.between(0, 5)) {
        case 0:
          pieces.push_back(pinned(grains));
          break;
        case 1:
          pieces.push_back(testing::stays(grains));
          break;
        case 2:
          pieces.push_back(movable(grains));
          break;
        case 3:
          pieces.push_back(hole(grains));
          break;
        default:
          pieces.push_back(evictable(grains, dearness * random.unit()));
      }
    }
    Layout layout(pieces);
    Pool& pool = layout.pool();
    const auto policy = make_policy(random.chance(0.7) ? "coop" : "dtr");
    OwnerOfContents owner(pool);
    std::vector<std::pair<BlockId, Bytes>> before;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!pool.contains(layout.block(i))) continue;
      owner.fill(layout.block(i));
      before.emplace_back(layout.block(i), pool.info(layout.block(i)).offset);
    }
    EvictingPool evicting(pool, *policy, owner, stopped_clock);
    const Grains wanted = std::min<Grains>(random.between(1, 30), to_grains(pool.bytes()));
    try {
      const BlockId made = evicting.allocate(request(wanted));
      owner.fill(made);
      ++served;
    } catch (const OutOfMemory&) {
      ++refused;
    }
    pool.validate();
    for (const auto& [id, offset] : before) {
      const bool has_gone =
          std::find(owner.evictions.begin(), owner.evictions.end(), id) != owner.evictions.end();
      ASSERT_NE(has_gone, pool.contains(id));
      if (has_gone) continue;
      const BlockInfo block = pool.info(id);
      ASSERT_TRUE(owner.holds(id));
      const bool may_move = block.pins == 0 && block.tenure != Tenure::kStays;
      ASSERT_TRUE(may_move || block.offset == offset);
      moved += static_cast<int>(block.offset != offset);
    }
  });
  if (testing::wanted_seed()) return;
  EXPECT_GT(served, 0);
  EXPECT_GT(refused, 0);
  EXPECT_GT(moved, 0);
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
