// The search for a window against all windows there are.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/policy/window_search.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::Case;

struct CostOnly {
  float operator()(const Candidate& block) const { return block.cost; }
};

struct Piece {
  Extent extent;
  double cost = 0;  // of a block that may go; 0: a hole
  bool is_fixed = false;
};

// A random order of pieces and the same as a plain list.
struct Sample {
  AddressOrder order;
  std::vector<Piece> pieces;
};

template <typename CostOf>
Sample make_sample(Case& one, int pieces, int longest, const CostOf& cost_of) {
  std::vector<Grains> sizes;
  Grains total = 0;
  for (int i = 0; i < pieces; ++i) {
    sizes.push_back(one.random.between(1, longest));
    total += sizes.back();
  }
  const double holes = one.random.unit() * 0.5;
  const double fixed = one.random.chance(0.5) ? 0 : one.random.unit() * 0.2;
  Sample sample{AddressOrder(total), {}};
  std::vector<BlockIndex> released;
  for (BlockIndex i = 0; i < sizes.size(); ++i) {
    BlockFacts facts{.cost = 1};
    facts.is_fixed = one.random.chance(fixed);
    const double cost = cost_of(one.random, facts);
    const auto place = sample.order.leftmost_hole(sizes[i]);
    const Grains begin = place.extent().begin;
    const Extent extent{begin, begin + sizes[i]};
    sample.order.take(place, extent, i, facts);
    // Two holes are never neighbours.
    const bool after_hole = !released.empty() && released.back() + 1 == i;
    if (one.random.chance(holes) && !after_hole) {
      released.push_back(i);
      sample.pieces.push_back({extent, 0, false});
    } else {
      sample.pieces.push_back({extent, cost, facts.is_fixed});
    }
  }
  for (const BlockIndex block : released) sample.order.release(block);
  return sample;
}

double cheapest_by_brute_force(const std::vector<Piece>& pieces, Grains request) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t left = 0; left < pieces.size(); ++left) {
    double cost = 0;
    for (std::size_t right = left; right < pieces.size() && !pieces[right].is_fixed; ++right) {
      cost += pieces[right].cost;
      if (pieces[right].extent.end - pieces[left].extent.begin >= request) {
        best = std::min(best, cost);
        break;
      }
    }
  }
  return best;
}

// What the window that was found really costs, and that it is one.
double measured(const std::vector<Piece>& pieces, const Window& window, Grains request) {
  EXPECT_GE(window.extent.size(), request);
  double cost = 0;
  bool has_begin = false;
  bool has_end = false;
  for (const Piece& piece : pieces) {
    has_begin |= piece.extent.begin == window.extent.begin;
    has_end |= piece.extent.end == window.extent.end;
    if (piece.extent.begin < window.extent.begin || piece.extent.end > window.extent.end) continue;
    EXPECT_FALSE(piece.is_fixed);
    cost += piece.cost;
  }
  EXPECT_TRUE(has_begin && has_end);
  return cost;
}

void check(Case& one, const Sample& sample, Grains request, const std::optional<Window>& found,
           double tolerance) {
  const double best = cheapest_by_brute_force(sample.pieces, request);
  one.trace("%zu pieces, request %d, best %g\n", sample.pieces.size(), request, best);
  ASSERT_EQ(found.has_value(), std::isfinite(best));
  if (found) {
    const double cost = measured(sample.pieces, *found, request);
    ASSERT_LE(cost, best * (1 + tolerance));
    ASSERT_NEAR(found->cost, cost, cost * tolerance);
  }
}

// Costs are small whole numbers: many ties, and sums without rounding, so that equal means equal.
TEST(WindowAgainstBruteForce, OnAMillionSmallPools) {
  const auto whole_costs = [](testing::Random& random, BlockFacts& facts) {
    facts.cost = static_cast<float>(random.between(1, 6));
    return static_cast<double>(facts.cost);
  };
  WindowSearch search;
  std::uint64_t found_some = 0;
  const std::uint64_t cases = testing::scaled(1'000'000);
  testing::for_each_case(cases, [&](Case& one) {
    const Sample sample = make_sample(one, one.random.between(1, 12), 9, whole_costs);
    const Grains request = one.random.between(1, sample.order.total() + 1);
    const auto found = cheapest_window(sample.order, request, 0, CostOnly{}, search);
    check(one, sample, request, found, 0);
    if (found) ++found_some;
  });
  if (!testing::wanted_seed()) {
    EXPECT_GT(found_some, cases / 4);
    EXPECT_LT(found_some, cases);
  }
}

TEST(WindowAgainstBruteForce, OnPoolsOfManyChunks) {
  const auto whole_costs = [](testing::Random& random, BlockFacts& facts) {
    facts.cost = random.chance(0.5) ? static_cast<float>(random.between(1, 3))
                                    : static_cast<float>(random.between(1, 1000));
    return static_cast<double>(facts.cost);
  };
  WindowSearch search;
  testing::for_each_case(testing::scaled(20'000), [&](Case& one) {
    const Sample sample =
        make_sample(one, one.random.between(50, 700), one.random.between(1, 100), whole_costs);
    const auto most = static_cast<double>(sample.order.total());
    const auto request = static_cast<Grains>(1 + std::pow(most, one.random.unit()));
    const auto found = cheapest_window(sample.order, request, 0, CostOnly{}, search);
    check(one, sample, request, found, 0);
  });
}

// What counts of a window's excess: as many further requests as fit.
double whole_requests(Grains excess, Grains request) {
  return static_cast<double>(excess / request * request);
}

// The least cost - credit * excess in whole requests, over the shortest windows that end at each piece.
double least_value_by_brute_force(const std::vector<Piece>& pieces, Grains request, double credit) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t right = 0; right < pieces.size(); ++right) {
    double cost = 0;
    for (std::size_t left = right + 1; left-- > 0 && !pieces[left].is_fixed;) {
      cost += pieces[left].cost;
      const Grains size = pieces[right].extent.end - pieces[left].extent.begin;
      if (size < request) continue;
      best = std::min(best, cost - credit * whole_requests(size - request, request));
      break;
    }
  }
  return best;
}

TEST(WindowAgainstBruteForce, WithCreditForWhatIsLeftOver) {
  const auto whole_costs = [](testing::Random& random, BlockFacts& facts) {
    facts.cost = static_cast<float>(random.between(1, random.chance(0.5) ? 10 : 1000));
    return static_cast<double>(facts.cost);
  };
  WindowSearch search;
  std::uint64_t differs = 0;
  testing::for_each_case(testing::scaled(100'000), [&](Case& one) {
    const int pieces = one.random.chance(0.1) ? 300 : 12;
    const Sample sample =
        make_sample(one, one.random.between(1, pieces), one.random.between(1, 40), whole_costs);
    const Grains request = one.random.between(1, sample.order.total());
    const double credit = one.random.between(0, 30);
    const auto found = cheapest_window(sample.order, request, 0, CostOnly{}, search,
                                       std::numeric_limits<Grains>::max(), credit);
    const double best = least_value_by_brute_force(sample.pieces, request, credit);
    ASSERT_EQ(found.has_value(), std::isfinite(best));
    if (!found) return;
    const double cost = measured(sample.pieces, *found, request);
    ASSERT_EQ(found->cost, cost);
    ASSERT_EQ(cost - credit * whole_requests(found->extent.size() - request, request), best);
    if (cost > cheapest_by_brute_force(sample.pieces, request)) ++differs;
  });
  if (!testing::wanted_seed()) {
    EXPECT_GT(differs, 0U) << "credit never made a difference";
  }
}

// Costs from a nanosecond to eleven days, ages from nothing to three hours: as far apart as can be.
void check_scores_of_all_magnitudes(Case& one, WindowSearch& search) {
  constexpr double kNow = 1e13;
  const auto real_costs = [](testing::Random& random, BlockFacts& facts) {
    facts.cost = static_cast<float>(std::pow(10.0, 15 * random.unit()));
    facts.last_use = kNow - (random.chance(0.1) ? 0 : std::pow(10.0, 13 * random.unit()));
    const float staleness = std::max(1.0F, static_cast<float>(kNow - facts.last_use));
    return static_cast<double>(facts.cost / staleness);
  };
  const Sample sample = make_sample(one, one.random.between(1, 200), 64, real_costs);
  const Grains request = one.random.between(1, sample.order.total());
  const auto found = cheapest_window(sample.order, request, kNow, CostOverStaleness{}, search);
  check(one, sample, request, found, 1e-6);
}

TEST(WindowAgainstBruteForce, OnScoresOfAllMagnitudes) {
  WindowSearch search;
  testing::for_each_case(testing::scaled(100'000),
                         [&](Case& one) { check_scores_of_all_magnitudes(one, search); });
}

// A group of windows was skipped for a difference that was nothing but rounding.
TEST(WindowAgainstBruteForce, OnTheCaseThatRoundingHid) {
  WindowSearch search;
  Case one(129955, false);
  check_scores_of_all_magnitudes(one, search);
}

}  // namespace
}  // namespace coop
