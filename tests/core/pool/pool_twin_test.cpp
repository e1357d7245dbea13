// The pool against a twin that is too simple to be wrong: a list of pieces, scanned for everything.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/pool/pool.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::Case;

class NaivePool {
 public:
  NaivePool(Grains total, Fit fit) : fit_(fit), pieces_{{0, total, kHole}} {}

  // The offset of the new block, or nothing.
  std::optional<Grains> allocate(int name, Grains size, Placement placement) {
    const auto begin = choose(size, placement);
    if (!begin) return std::nullopt;
    const auto chosen = std::find_if(pieces_.begin(), pieces_.end(),
                                     [&](const Piece& piece) { return *begin < piece.end; });
    const Piece hole = *chosen;
    auto next = pieces_.erase(chosen);
    if (hole.end > *begin + size) next = pieces_.insert(next, {*begin + size, hole.end, kHole});
    next = pieces_.insert(next, {*begin, *begin + size, name});
    if (*begin > hole.begin) pieces_.insert(next, {hole.begin, *begin, kHole});
    if (placement == Placement::kLongLived && *begin <= long_lived_end_) {
      long_lived_end_ = std::max(long_lived_end_, *begin + size);
    }
    return begin;
  }

  void free(int name) {
    for (Piece& piece : pieces_) {
      if (piece.name == name) piece.name = kHole;
    }
    tidy();
  }

  // The new offset, or nothing if there is no hole at its left.
  std::optional<Grains> slide_left(int name) {
    for (std::size_t i = 1; i < pieces_.size(); ++i) {
      if (pieces_[i].name != name || pieces_[i - 1].name != kHole) continue;
      const Grains size = pieces_[i].end - pieces_[i].begin;
      const Grains begin = pieces_[i - 1].begin;
      pieces_[i].begin = begin + size;
      pieces_[i - 1].end = begin + size;
      std::swap(pieces_[i].name, pieces_[i - 1].name);
      tidy();
      return begin;
    }
    return std::nullopt;
  }

  [[nodiscard]] Grains free_grains() const {
    Grains sum = 0;
    for (const Piece& piece : pieces_) sum += piece.name == kHole ? piece.end - piece.begin : 0;
    return sum;
  }
  [[nodiscard]] Grains largest_hole() const {
    Grains most = 0;
    for (const Piece& piece : pieces_) {
      if (piece.name == kHole) most = std::max(most, piece.end - piece.begin);
    }
    return most;
  }

 private:
  static constexpr int kHole = -1;
  struct Piece {
    Grains begin, end;
    int name;
  };

  [[nodiscard]] std::optional<Grains> choose(Grains size, Placement placement) const {
    if (fit_ == Fit::kBest) return best_fit(size, placement == Placement::kCheap);
    if (placement == Placement::kCheap) return last_fit(size);
    const Grains headroom_end = long_lived_end_ + pieces_.back().end / 16;
    if (placement == Placement::kExpensive) {
      for (const Grains from : {headroom_end, long_lived_end_}) {
        if (const auto begin = first_fit(size, from)) return begin;
      }
    }
    return first_fit(size, 0);
  }

  [[nodiscard]] std::optional<Grains> first_fit(Grains size, Grains from) const {
    for (const Piece& piece : pieces_) {
      const Grains begin = std::max(piece.begin, from);
      if (piece.name == kHole && piece.end - begin >= size) return begin;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Grains> last_fit(Grains size) const {
    for (std::size_t i = pieces_.size(); i-- > 0;) {
      const Piece& piece = pieces_[i];
      if (piece.name == kHole && piece.end - piece.begin >= size) return piece.end - size;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Grains> best_fit(Grains size, bool at_right) const {
    const Piece* best = nullptr;
    for (const Piece& piece : pieces_) {
      const Grains room = piece.end - piece.begin;
      if (piece.name != kHole || room < size) continue;
      if (best == nullptr || room < best->end - best->begin) best = &piece;
    }
    if (best == nullptr) return std::nullopt;
    return at_right ? best->end - size : best->begin;
  }

  void tidy() {
    for (std::size_t i = 1; i < pieces_.size();) {
      if (pieces_[i].name == kHole && pieces_[i - 1].name == kHole) {
        pieces_[i - 1].end = pieces_[i].end;
        pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    for (const Piece& piece : pieces_) {
      if (piece.name == kHole && piece.begin < long_lived_end_ && long_lived_end_ <= piece.end) {
        long_lived_end_ = piece.begin;
      }
    }
  }

  Fit fit_;
  std::vector<Piece> pieces_;
  Grains long_lived_end_ = 0;
};

class Twins {
 public:
  Twins(Case& one, Grains total, Fit fit)
      : case_(one),
        pool_({.bytes = to_bytes(total), .fit = fit, .small_limit = 0}, backing_),
        twin_(total, fit) {}

  void step(Grains most) {
    const double lot = case_.random.unit();
    if (lot < 0.52) {
      allocate(case_.random.between(1, most));
    } else if (lot < 0.90 && !blocks_.empty()) {
      free();
    } else if (lot < 0.95 && !blocks_.empty()) {
      touch();
    } else if (!blocks_.empty()) {
      slide();
    }
    ASSERT_EQ(pool_.free_bytes(), to_bytes(twin_.free_grains()));
    ASSERT_EQ(pool_.largest_hole_bytes(), to_bytes(twin_.largest_hole()));
  }

  const Pool& pool() { return pool_; }

 private:
  void allocate(Grains size) {
    const auto placement = static_cast<Placement>(case_.random.below(3));
    case_.trace("allocate %d: %d grains, placement %d\n", names_, size,
                static_cast<int>(placement));
    const auto expected = twin_.allocate(names_, size, placement);
    const auto block = pool_.allocate(to_bytes(size), placement);
    ASSERT_EQ(block.has_value(), expected.has_value());
    if (block) {
      ASSERT_EQ(pool_.info(*block).offset, to_bytes(*expected));
      pool_.set_tenure(*block, Tenure::kMovable);
      if (case_.random.chance(0.5)) pool_.set_evictable(*block, 1 + case_.random.unit(), 0);
      blocks_.emplace_back(names_, *block);
    }
    ++names_;
  }

  void free() {
    const std::size_t i = case_.random.below(blocks_.size());
    case_.trace("free %d\n", blocks_[i].first);
    twin_.free(blocks_[i].first);
    ASSERT_TRUE(pool_.free(blocks_[i].second));
    blocks_[i] = blocks_.back();
    blocks_.pop_back();
  }

  // The twin knows nothing of facts; Pool::validate compares them with what the search reads.
  void touch() {
    const BlockId block = blocks_[case_.random.below(blocks_.size())].second;
    switch (case_.random.below(4)) {
      case 0:
        pool_.touch(block, 1000 * case_.random.unit());
        break;
      case 1:
        pool_.set_evictable(block, 1 + case_.random.unit(), 1000 * case_.random.unit());
        break;
      case 2:
        pool_.pin(block);
        pool_.touch(block, 1);
        pool_.unpin(block);
        break;
      default:
        pool_.set_tenure(block, Tenure::kMovable);
    }
  }

  void slide() {
    const auto& [name, block] = blocks_[case_.random.below(blocks_.size())];
    case_.trace("slide %d\n", name);
    const auto expected = twin_.slide_left(name);
    const auto target = pool_.slide_target(block);
    ASSERT_EQ(target.has_value(), expected.has_value());
    if (target) {
      ASSERT_EQ(*target, to_bytes(*expected));
      ASSERT_EQ(pool_.slide_left(block), *target);
      ASSERT_EQ(pool_.info(block).offset, *target);
    }
  }

  Case& case_;
  FakeBacking backing_;
  Pool pool_;
  NaivePool twin_;
  std::vector<std::pair<int, BlockId>> blocks_;
  int names_ = 0;
};

void run(Case& one, Fit fit, Grains total, Grains most, int steps) {
  Twins twins(one, total, fit);
  for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
    twins.step(most);
    if (i % 64 == 0) twins.pool().validate();
  }
  twins.pool().validate();
}

class PoolTwin : public ::testing::TestWithParam<Fit> {};

TEST_P(PoolTwin, AgreeOnManyShortLives) {
  testing::for_each_case(testing::scaled(20'000), [&](Case& one) {
    const Grains total = one.random.between(1, 60);
    run(one, GetParam(), total, one.random.between(1, std::min(total, 12)), 60);
  });
}

TEST_P(PoolTwin, AgreeOnLongLivesOverManyChunks) {
  testing::for_each_case(testing::scaled(20), [&](Case& one) {
    run(one, GetParam(), 20'000, one.random.between(2, 40), 10'000);
  });
}

INSTANTIATE_TEST_SUITE_P(BothFits, PoolTwin, ::testing::Values(Fit::kFromEnds, Fit::kBest),
                         [](const auto& test) {
                           return test.param == Fit::kBest ? "BestFit" : "FromEnds";
                         });

// With small blocks the twin would have to know about slabs; what can be seen from outside must
// hold.
TEST(PoolProperty, BlocksNeverOverlapAndBytesAddUp) {
  testing::for_each_case(testing::scaled(300), [](Case& one) {
    FakeBacking backing;
    Pool pool({.bytes = 4_MiB, .small_limit = 16_KiB}, backing);
    std::map<Bytes, BlockId> by_offset;
    Bytes held = 0;
    for (int i = 0; i < 600; ++i) {
      if (one.random.chance(0.55)) {
        const bool is_large = one.random.chance(0.2);
        const Bytes size = 1 + one.random.below(is_large ? 400'000 : 20'000);
        const auto block = pool.allocate(size, static_cast<Placement>(one.random.below(3)));
        if (!block) continue;
        const BlockInfo info = pool.info(*block);
        ASSERT_GE(info.bytes, size);
        const auto after = by_offset.lower_bound(info.offset);
        ASSERT_TRUE(after == by_offset.end() || info.offset + info.bytes <= after->first);
        if (after != by_offset.begin()) {
          const BlockInfo before = pool.info(std::prev(after)->second);
          ASSERT_LE(before.offset + before.bytes, info.offset);
        }
        by_offset[info.offset] = *block;
        held += info.bytes;
      } else if (!by_offset.empty()) {
        const auto victim = std::next(
            by_offset.begin(), static_cast<std::ptrdiff_t>(one.random.below(by_offset.size())));
        held -= pool.info(victim->second).bytes;
        ASSERT_TRUE(pool.free(victim->second));
        by_offset.erase(victim);
      }
      ASSERT_EQ(pool.held_bytes(), held);
    }
    pool.validate();
  });
}

}  // namespace
}  // namespace coop
