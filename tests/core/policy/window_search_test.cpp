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
  // Scores 25 orders of magnitude apart: the sum of the dear ones must not hide how the cheap ones
  // differ. An earlier version of ours took the first of the two cheap windows.
  for (const int dear : {1, 3, 100}) {
    std::vector<PieceSpec> pieces(static_cast<std::size_t>(dear), evictable(1, 1e15, 1e10));
    pieces.push_back(evictable(4, 500, 0));
    pieces.push_back(evictable(4, 1, 0));
    pieces.push_back(evictable(4, 2, 0));
    Layout layout(pieces);
    WindowSearch search;
    const auto window =
        cheapest_window(layout.pool().order(), 4, 1e10, CostOverStaleness{}, search);
    ASSERT_TRUE(window);
    EXPECT_EQ(window->extent, (Extent{dear + 4, dear + 8})) << dear;
    EXPECT_NEAR(window->cost, 1e-10, 1e-16);
  }
}

TEST(WindowSearch, KeepsToItsLimit) {
  Layout layout({evictable(4, 9), evictable(4, 8), evictable(4, 1)});
  WindowSearch search;
  const auto find = [&](Grains limit) {
    return cheapest_window(layout.pool().order(), 4, 0, CostOnly{}, search, limit);
  };
  EXPECT_EQ(find(12)->extent, (Extent{8, 12}));
  EXPECT_EQ(find(11)->extent, (Extent{4, 8}));
  EXPECT_EQ(find(7)->extent, (Extent{0, 4}));
  EXPECT_FALSE(find(3));
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
