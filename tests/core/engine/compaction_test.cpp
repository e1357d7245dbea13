// Moving instead of evicting: Note [Moving instead of evicting] in core/engine/evicting_pool.cpp.
#include "core/engine/compaction.hpp"

#include <limits>
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

constexpr double kNow = 1e6;

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

// Prices in the pool are those of the last look, and rise behind its back. Victims' were looked up, and what went where
// others were pushed together was not: a gradient that waited went for next to nothing, and all of the backward pass
// with it.
TEST(MovingInsteadOfEvicting, WhatGoesCostsWhatItCostsByNow) {
  class Risen final : public BlockOwner {
   public:
    explicit Risen(Layout& layout) : layout_(layout) {}
    void evict(BlockId id) override { evictions.push_back(id); }
    void relocate(BlockId /*id*/, Bytes /*from*/, Bytes /*to*/, Bytes /*bytes*/) override {}
    bool correct_costs(std::span<const BlockId> blocks) override {
      bool is_news = false;
      for (const BlockId block : blocks) {
        if (block == layout_.block(2)) is_news |= layout_.pool().set_cost(block, 1e12F);
      }
      return is_news;
    }
    std::vector<BlockId> evictions;

   private:
    Layout& layout_;
  };
  Layout layout({hole(3), evictable(4, 1e9), evictable(3, 10), pinned(1)});
  const auto policy = make_policy("coop");
  Risen owner(layout);
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(6));
  EXPECT_EQ(owner.evictions, std::vector{layout.block(1)});
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

// Every run of pieces, one by one.
double cheapest_by_brute_force(const std::vector<testing::PieceSpec>& pieces, Grains request,
                               const CompactionTerms& terms) {
  using testing::PieceSpec;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t left = 0; left < pieces.size(); ++left) {
    Grains room = 0;
    double cost = 0;
    for (std::size_t right = left; right < pieces.size(); ++right) {
      const PieceSpec& piece = pieces[right];
      if (piece.kind == PieceSpec::kStays || piece.kind == PieceSpec::kPinned) break;
      const BlockFacts facts{.cost = static_cast<float>(piece.cost), .last_use = piece.last_use};
      const bool goes = piece.kind == PieceSpec::kEvictable && terms.evicts(facts);
      if (goes) cost += terms.cost_of_evicting(facts);
      if (goes || piece.kind == PieceSpec::kHole) {
        room += piece.grains;
      } else {
        cost += static_cast<double>(to_bytes(piece.grains)) * terms.copy_ns_per_byte;
      }
      if (room >= request) best = std::min(best, cost);
    }
  }
  return best;
}

TEST(Stretch, IsTheCheapestThereIs) {
  int found = 0;
  int too_dear = 0;
  testing::for_each_case(testing::scaled(2000), [&](testing::Case& one) {
    testing::Random& random = one.random;
    std::vector<testing::PieceSpec> pieces;
    const double staying = random.chance(0.3) ? 0 : 0.1 * random.unit();
    for (int i = random.between(1, 150); i > 0; --i) {
      const Grains grains = random.between(1, 9);
      const bool is_after_hole = !pieces.empty() && pieces.back().kind == testing::PieceSpec::kHole;
      const double cost = random.between(1, 1000);
      if (random.chance(staying)) {
        pieces.push_back(random.chance(0.5) ? testing::stays(grains) : pinned(grains, cost));
      } else if (random.chance(0.3) && !is_after_hole) {
        pieces.push_back(hole(grains));
      } else if (random.chance(0.3)) {
        pieces.push_back(movable(grains));
      } else {
        pieces.push_back(evictable(grains, cost, kNow - random.between(0, 1000)));
      }
    }
    CompactionTerms terms{.copy_ns_per_byte = random.unit(),
                          .usual_staleness = random.chance(0.3) ? 0.0 : random.between(1, 1000),
                          .now = kNow};
    if (random.chance(0.7)) terms.dear = random.chance(0.5) ? 0 : random.between(1, 1000);
    if (random.chance(0.3)) terms.most = random.between(1, 5000);
    const Grains request = random.between(1, 40);
    Layout layout(pieces);
    const auto stretch = find_stretch_to_compact(layout.pool(), request, terms);
    const double cheapest = cheapest_by_brute_force(pieces, request, terms);
    ASSERT_EQ(stretch.has_value(), cheapest < terms.most);
    if (!stretch) {
      too_dear += static_cast<int>(cheapest >= terms.most);
      return;
    }
    ++found;
    EXPECT_NEAR(stretch->cost, cheapest, 1e-9 * (1 + cheapest));
  });
  if (testing::wanted_seed()) return;
  EXPECT_GT(found, 0);
  EXPECT_GT(too_dear, 0);
}

}  // namespace
}  // namespace coop
