// What the policies choose in pools that have lived, against choices made the simple way: from the pool's
// own records, block by block, without the columns that the searches read.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/policy/policy.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::Case;

constexpr double kNow = 1e6;

struct Piece {
  Extent extent;
  BlockId block;  // none: a hole
  bool is_evictable = false;
  float cost = 0;
  float staleness = 0;
};

// A pool after some hundred random allocations, frees, pins and uses, spread over many chunks.
class LivedPool {
 public:
  explicit LivedPool(Case& one) : pool_({.bytes = to_bytes(1500), .small_limit = 0}, backing_) {
    testing::Random& random = one.random;
    for (int i = one.random.between(10, 1500); i > 0; --i) {
      if (random.chance(0.65)) {
        const auto block = pool_.allocate(to_bytes(random.between(1, 12)),
                                          static_cast<Placement>(random.below(3)));
        if (!block) continue;
        blocks_.push_back(*block);
        if (random.chance(0.9)) pool_.set_evictable(*block, random.between(1, 1000), 0);
      } else if (!blocks_.empty()) {
        const std::size_t victim = random.below(blocks_.size());
        static_cast<void>(pool_.free(blocks_[victim]));
        blocks_[victim] = blocks_.back();
        blocks_.pop_back();
      }
      if (blocks_.empty()) continue;
      const BlockId any = blocks_[random.below(blocks_.size())];
      pool_.touch(any, kNow * random.unit());
      if (random.chance(0.02)) pool_.pin(any);
    }
  }

  const Pool& pool() { return pool_; }

  // From the records alone.
  std::vector<Piece> pieces() {
    std::vector<Piece> held;
    for (const BlockId id : blocks_) {
      const BlockInfo info = pool_.info(id);
      const auto begin = static_cast<Grains>(info.offset / kGrainBytes);
      held.push_back({.extent = {begin, begin + to_grains(info.bytes)},
                      .block = id,
                      .is_evictable = info.tenure == Tenure::kEvictable && info.pins == 0,
                      .cost = info.cost,
                      .staleness = std::max(1.0F, static_cast<float>(kNow - info.last_use))});
    }
    std::sort(held.begin(), held.end(),
              [](const Piece& a, const Piece& b) { return a.extent.begin < b.extent.begin; });
    std::vector<Piece> all;
    Grains position = 0;
    for (const Piece& piece : held) {
      if (piece.extent.begin > position) all.push_back({.extent = {position, piece.extent.begin}});
      all.push_back(piece);
      position = piece.extent.end;
    }
    const auto end = static_cast<Grains>(pool_.bytes() / kGrainBytes);
    if (position < end) all.push_back({.extent = {position, end}});
    return all;
  }

 private:
  FakeBacking backing_;
  Pool pool_;
  std::vector<BlockId> blocks_;
};

std::vector<BlockId> choose(const char* policy, const Pool& pool, Grains grains) {
  std::vector<BlockId> victims;
  make_policy(policy)->choose_victims(pool, {to_bytes(grains), Placement::kExpensive, kNow},
                                      victims);
  return victims;
}

Grains hole_at(const std::vector<Piece>& pieces, std::size_t i) {
  return i < pieces.size() && !pieces[i].block ? pieces[i].extent.size() : 0;
}

float score_of(const std::string& policy, const std::vector<Piece>& pieces, std::size_t i) {
  const Piece& piece = pieces[i];
  const auto size = static_cast<float>(piece.extent.size());
  const auto beside = static_cast<float>(hole_at(pieces, i - 1) + hole_at(pieces, i + 1));
  if (policy == "dtr") return piece.cost / (piece.staleness * size);
  if (policy == "dte") return piece.cost / (piece.staleness * (size + beside));
  if (policy == "lru") return 1.0F / piece.staleness;
  return 1.0F / size;
}

BlockId lowest_scored(const std::string& policy, const std::vector<Piece>& pieces) {
  float lowest = std::numeric_limits<float>::infinity();
  BlockId found;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].is_evictable || score_of(policy, pieces, i) >= lowest) continue;
    lowest = score_of(policy, pieces, i);
    found = pieces[i].block;
  }
  return found;
}

TEST(VictimsTwin, OneByOneTakesTheLowestScore) {
  testing::for_each_case(testing::scaled(2'000), [](Case& one) {
    LivedPool lived(one);
    const std::vector<Piece> pieces = lived.pieces();
    for (const std::string policy : {"dtr", "dte", "lru", "largest"}) {
      const BlockId expected = lowest_scored(policy, pieces);
      const auto victims = choose(policy.c_str(), lived.pool(), 5);
      ASSERT_EQ(victims, expected ? std::vector{expected} : std::vector<BlockId>{}) << policy;
    }
  });
}

// What the cheapest window costs; nothing if there is none.
std::optional<double> cheapest_window_cost(const std::vector<Piece>& pieces, Grains request) {
  std::optional<double> best;
  for (std::size_t left = 0; left < pieces.size(); ++left) {
    double cost = 0;
    for (std::size_t right = left; right < pieces.size(); ++right) {
      const Piece& piece = pieces[right];
      if (piece.block && !piece.is_evictable) break;
      if (piece.block) cost += static_cast<double>(piece.cost / piece.staleness);
      if (piece.extent.end - pieces[left].extent.begin < request) continue;
      if (!best || cost < *best) best = cost;
      break;
    }
  }
  return best;
}

TEST(VictimsTwin, AWindowIsTheCheapestRunOfNeighbours) {
  std::uint64_t evicted = 0;
  const std::uint64_t cases = testing::scaled(2'000);
  testing::for_each_case(cases, [&](Case& one) {
    LivedPool lived(one);
    const std::vector<Piece> pieces = lived.pieces();
    const Grains request = one.random.between(1, 60);
    const auto best = cheapest_window_cost(pieces, request);
    const auto victims = choose("coop", lived.pool(), request);
    double cost = 0;
    for (const BlockId victim : victims) {
      const auto found = std::find_if(pieces.begin(), pieces.end(),
                                      [&](const Piece& piece) { return piece.block == victim; });
      ASSERT_TRUE(found != pieces.end() && found->is_evictable);
      cost += static_cast<double>(found->cost / found->staleness);
    }
    evicted += victims.size();
    ASSERT_NEAR(cost, best.value_or(0), best.value_or(0) * 1e-6);
  });
  if (!testing::wanted_seed()) {
    EXPECT_GT(evicted, cases / 4);
  }
}

}  // namespace
}  // namespace coop
