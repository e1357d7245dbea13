#include "core/plan/block_layout.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/plan/slab_room.hpp"
#include "core/pool/grain.hpp"
#include "core/pool/small_area.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::Case;

constexpr Bytes kGrain = 512;
static_assert(kBlockAlignment == kGrainBytes);

bool are_together(const BlockLife& a, const BlockLife& b) {
  const auto is_there = [](const BlockLife& block, Moment moment) {
    return (block.from <= moment && moment <= block.until) || moment < block.early_end;
  };
  for (Moment moment = 0; moment < 100; ++moment) {
    if (is_there(a, moment) && is_there(b, moment)) return true;
  }
  return false;
}

TEST(BlockLayout, PutsWhatIsNotThereTogetherAtOnePlace) {
  const std::vector<BlockLife> blocks{
      {2 * kGrain, 0, 3, 0}, {2 * kGrain, 4, 9, 0}, {kGrain, 3, 4, 0}};
  const Layout layout = BlockLayout({}, 3 * kGrain).lay_out(blocks, 0);
  EXPECT_EQ(layout.offsets, (std::vector<Bytes>{0, 0, 2 * kGrain}));
  EXPECT_EQ(layout.height, 3 * kGrain);
}

TEST(BlockLayout, LeavesTheReserveFreeAroundWhatIsHeld) {
  const std::vector<ByteRange> held{{3 * kGrain, 4 * kGrain}, {kGrain, 2 * kGrain}};
  const std::vector<BlockLife> blocks{{kGrain, 0, 1, 0}};
  // Of the reserve a grain each lies before, between and behind them.
  const Layout layout = BlockLayout(held, 6 * kGrain).lay_out(blocks, 3 * kGrain);
  EXPECT_EQ(layout.offsets, std::vector<Bytes>{5 * kGrain});
}

TEST(BlockLayout, SaysHowHighItIsWhereItDoesNotFit) {
  const std::vector<BlockLife> blocks{{2 * kGrain, 0, 1, 0}, {2 * kGrain, 1, 2, 0}};
  EXPECT_EQ(BlockLayout({}, 3 * kGrain).lay_out(blocks, 0).height, 4 * kGrain);
  EXPECT_EQ(BlockLayout({}, 3 * kGrain).lay_out({}, 5 * kGrain).height, 5 * kGrain);
}

TEST(BlockLayout, CountsWhatIsThereAtAMomentOnce) {
  const auto most_of = [](const BlockLife& block) {
    BlockLayout layout({}, kGrain);
    const std::span<const Bytes> least = layout.least({&block, 1}, 0);
    EXPECT_EQ(layout.lay_out({&block, 1}, 0).height, kGrain);
    return *std::max_element(least.begin(), least.end());
  };
  EXPECT_EQ(most_of({kGrain, 1, 5, 3}), kGrain) << "early lives end in the other";
  EXPECT_EQ(most_of({kGrain, 1, 5, 8}), kGrain) << "behind it";
  EXPECT_EQ(most_of({kGrain, 3, 5, 2}), kGrain) << "before it";
  const std::vector<ByteRange> held{{kGrain, 3 * kGrain}};
  const BlockLife block{kGrain, 1, 1, 0};
  BlockLayout layout(held, 10 * kGrain);
  const std::span<const Bytes> least = layout.least({&block, 1}, 4 * kGrain);
  EXPECT_EQ(std::vector<Bytes>(least.begin(), least.end()),
            (std::vector<Bytes>{6 * kGrain, 7 * kGrain, 6 * kGrain}));
}

// A forward pass makes activations, the backward pass reads them, the last one first, and makes a gradient for each, which
// stay. Where the one ends and where the other does the budget is full to the last grain. By size, what is about to go lies
// beneath what stays, and leaves a hole: in a recorded GPT these were half a gigabyte, and there was no plan.
TEST(BlockLayout, FillsTwoMomentsToTheLastGrain) {
  testing::for_each_case(testing::scaled(500), [](Case& one) {
    const auto layers = static_cast<Moment>(one.random.between(3, 20));
    std::vector<BlockLife> blocks;
    Bytes all = 0;
    Bytes freed = 0;  // of activations, when a gradient comes, and not taken by other gradients
    for (Moment i = 0; i < layers; ++i) {
      const Moment read = layers + i;
      const Moment made = layers - 1 - i;
      const Bytes activation = kGrain * static_cast<Bytes>(one.random.between(1, 30));
      all += activation;
      freed += activation;
      const bool is_last = i + 1 == layers;
      const Bytes gradient = is_last ? freed : kGrain * one.random.below(freed / kGrain + 1);
      freed -= gradient;
      blocks.push_back({activation, made, read, 0});
      if (gradient > 0) blocks.push_back({gradient, read + 1, 2 * layers, 0});
    }
    ASSERT_EQ(BlockLayout({}, all).lay_out(blocks, 0).height, all);
  });
}

TEST(BlockLayout, BlocksThatAreThereTogetherLieApart) {
  testing::for_each_case(testing::scaled(2'000), [](Case& one) {
    std::vector<BlockLife> blocks;
    Bytes all = 0;
    for (int i = one.random.between(0, 40); i > 0; --i) {
      BlockLife block{.bytes = kGrain * static_cast<Bytes>(one.random.between(1, 10))};
      block.from = static_cast<Moment>(one.random.below(90));
      block.until = block.from + static_cast<Moment>(one.random.below(100 - block.from));
      if (one.random.chance(0.1)) block.early_end = static_cast<Moment>(one.random.below(30));
      blocks.push_back(block);
      all += block.bytes;
    }
    std::vector<ByteRange> held;
    for (int i = one.random.between(0, 3); i > 0; --i) {
      const Bytes begin = kGrain * one.random.below(60);
      held.push_back({begin, begin + kGrain * one.random.below(4)});
    }
    const Bytes budget = one.random.chance(0.5) ? all / 2 : std::max(all, 64 * kGrain);
    BlockLayout layouts(held, budget);
    const Layout layout = layouts.lay_out(blocks, kGrain);
    const bool fits = layout.height <= budget && budget >= 64 * kGrain;  // what is held, too
    for (const Bytes least : layouts.least(blocks, kGrain)) ASSERT_TRUE(!fits || least <= budget);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Bytes begin = layout.offsets[i];
      const Bytes end = begin + blocks[i].bytes;
      ASSERT_EQ(begin % kGrain, 0);
      ASSERT_LE(end, layout.height);
      for (const ByteRange& range : held) {
        ASSERT_TRUE(range.begin == range.end || end <= range.begin || range.end <= begin);
      }
      for (std::size_t k = 0; k < i; ++k) {
        if (!are_together(blocks[i], blocks[k])) continue;
        ASSERT_TRUE(end <= layout.offsets[k] || layout.offsets[k] + blocks[k].bytes <= begin);
      }
    }
  });
}

// The pool's own small area takes no more than the room that is kept for it.
TEST(SlabRoom, IsEnoughForTheSmallArea) {
  constexpr Bytes kSmallLimit = 16 * kGrain;
  constexpr Bytes kBudget = 8192 * kGrain;
  constexpr Grains kSlab = 8192 / 256;
  testing::for_each_case(testing::scaled(500), [](Case& one) {
    SmallArea area(to_grains(kSmallLimit), kSlab);
    std::vector<PlannedBlock> blocks;
    std::vector<std::pair<std::size_t, SmallArea::SlotId>> live;
    Grains taken = 0;
    Grains most = 0;
    constexpr Moment kMoments = 200;
    std::vector<Grains> slabs;
    for (Moment moment = 0; moment < kMoments; ++moment) {
      // What goes, goes after the moment before: the last that came first, so that slabs are not left half empty.
      while (!live.empty() && one.random.chance(0.4)) {
        blocks[live.back().first].until = moment - 1;
        if (const auto slab = area.release(live.back().second)) {
          taken -= slabs[*slab];
        }
        live.pop_back();
      }
      if (!one.random.chance(0.8)) continue;
      const Bytes bytes = 1 + one.random.below(kSmallLimit);
      if (!area.has_room(to_grains(bytes))) {
        area.expect_slab();
        const Grains size = area.slab_size(to_grains(bytes));
        slabs.push_back(size);
        area.add_slab(to_grains(bytes), {0, size}, static_cast<BlockIndex>(slabs.size() - 1));
        taken += size;
      }
      live.emplace_back(blocks.size(), area.take(to_grains(bytes)).id);
      blocks.push_back({.bytes = bytes, .from = moment, .until = kMoments - 1});
      most = std::max(most, taken);
    }
    ASSERT_LE(to_bytes(most), slab_room(blocks, kSmallLimit, kBudget, kMoments));
  });
}

}  // namespace
}  // namespace coop
