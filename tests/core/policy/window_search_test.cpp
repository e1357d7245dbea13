#include "core/policy/window_search.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "support/layout.hpp"

namespace coop {
namespace {

using testing::evictable;
using testing::hole;
using testing::Layout;
using testing::movable;
using testing::PieceSpec;
using testing::pinned;
using testing::stays;

struct CostOnly {
  float operator()(const Candidate& block) const { return block.cost; }
};
struct CostOverStaleness {
  float operator()(const Candidate& block) const { return block.cost / block.staleness; }
};

std::optional<Window> search(const std::vector<PieceSpec>& pieces, Grains request) {
  Layout layout(pieces);
  WindowSearch search;
  return cheapest_window(layout.pool().order(), request, 0, CostOnly{}, search);
}

// The last window at the pool's end must shrink from the left too. An earlier implementation took
// both blocks here, for 101.
TEST(WindowSearch, ShrinksTheWindowAtThePoolsEnd) {
  const auto window = search({evictable(4, 100), evictable(8, 1)}, 8);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->extent, (Extent{4, 12}));
  EXPECT_EQ(window->cost, 1);
}

TEST(WindowSearch, ShrinksTheWindowAtThePoolsBegin) {
  const auto window = search({evictable(8, 1), evictable(4, 100)}, 8);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->extent, (Extent{0, 8}));
}

TEST(WindowSearch, HolesCostNothing) {
  const auto window =
      search({evictable(4, 5), hole(3), evictable(1, 2), evictable(4, 3), evictable(4, 3)}, 4);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->extent, (Extent{4, 8}));
  EXPECT_EQ(window->cost, 2);
}

TEST(WindowSearch, PinnedAndSourceBlocksBreakTheWindow) {
  for (const PieceSpec& fixed : {pinned(1), stays(1), movable(1)}) {
    EXPECT_FALSE(search({evictable(4, 1), fixed, evictable(4, 1)}, 5));
    const auto window = search({evictable(4, 1), fixed, evictable(4, 1), hole(1)}, 5);
    ASSERT_TRUE(window);
    EXPECT_EQ(window->extent, (Extent{5, 10}));
  }
}

TEST(WindowSearch, OfEqualWindowsTheLeftmost) {
  const auto window = search({evictable(2, 3), evictable(2, 3), evictable(2, 3)}, 2);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->extent, (Extent{0, 2}));
}

TEST(WindowSearch, TheWholePoolAndNotMore) {
  EXPECT_EQ(search({evictable(4, 1), hole(2), evictable(3, 7)}, 9)->extent, (Extent{0, 9}));
  EXPECT_FALSE(search({evictable(4, 1), hole(2), evictable(3, 7)}, 10));
}

TEST(WindowSearch, NothingToFindInAPoolThatIsAllPinned) {
  EXPECT_FALSE(search({pinned(4), stays(4)}, 1));
}

// A block used this very moment has no staleness. An earlier implementation divided by it, added
// infinity to its running sum and subtracted it again: NaN, and no window at all.
TEST(WindowSearch, ZeroStalenessIsFinite) {
  Layout layout({evictable(4, 1e9, 1000), evictable(4, 50, 10), evictable(4, 40, 0)});
  WindowSearch search;
  const auto window = cheapest_window(layout.pool().order(), 4, 1000, CostOverStaleness{}, search);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->extent, (Extent{8, 12}));
  EXPECT_NEAR(window->cost, 0.04, 1e-6);
}

// Nor does a clock that ran backwards do harm.
TEST(WindowSearch, ALastUseInTheFutureIsFresh) {
  Layout layout({evictable(4, 10, 5000), evictable(4, 10, 0)});
  WindowSearch search;
  const auto window = cheapest_window(layout.pool().order(), 4, 1000, CostOverStaleness{}, search);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->extent, (Extent{4, 8}));
}

TEST(WindowSearch, TheDearestAndTheCheapestBlocksSideBySide) {
  // Sums over 24 orders of magnitude must not hide the cheap window behind the dear blocks.
  std::vector<PieceSpec> pieces;
  for (int i = 0; i < 200; ++i) pieces.push_back(evictable(1, i % 10 == 9 ? 1e15 : 2));
  pieces.push_back(evictable(4, 1));
  EXPECT_EQ(search(pieces, 4)->extent, (Extent{200, 204}));
}

TEST(WindowSearch, KeepsNothingFromOneSearchToTheNext) {
  Layout large(std::vector<PieceSpec>(500, evictable(1, 1)));
  Layout small({evictable(4, 9), evictable(4, 8)});
  WindowSearch search;
  ASSERT_TRUE(cheapest_window(large.pool().order(), 400, 0, CostOnly{}, search));
  const auto window = cheapest_window(small.pool().order(), 4, 0, CostOnly{}, search);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->extent, (Extent{4, 8}));
  EXPECT_EQ(window->cost, 8);
}

}  // namespace
}  // namespace coop
