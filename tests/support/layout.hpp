#pragma once

// Pools written down piece by piece, for tests of the search.

#include <initializer_list>
#include <vector>

#include "core/pool/pool.hpp"

namespace coop::testing {

struct PieceSpec {
  enum Kind { kHole, kEvictable, kMovable, kStays, kPinned } kind = kHole;
  Grains grains = 1;
  double cost = 1;
  double last_use = 0;
};

inline PieceSpec hole(Grains grains) { return {PieceSpec::kHole, grains}; }
inline PieceSpec evictable(Grains grains, double cost, double last_use = 0) {
  return {PieceSpec::kEvictable, grains, cost, last_use};
}
inline PieceSpec movable(Grains grains) { return {PieceSpec::kMovable, grains}; }
inline PieceSpec stays(Grains grains) { return {PieceSpec::kStays, grains}; }
inline PieceSpec pinned(Grains grains, double cost = 1) {
  return {PieceSpec::kPinned, grains, cost};
}

// A pool with these pieces from left to right; neighbouring holes become one.
class Layout {
 public:
  explicit Layout(const std::vector<PieceSpec>& pieces, Fit fit = Fit::kFromEnds)
      : pool_({.bytes = to_bytes(total(pieces)), .fit = fit, .small_limit = 0}, backing_) {
    for (const PieceSpec& piece : pieces) {
      blocks_.push_back(*pool_.allocate(to_bytes(piece.grains), Placement::kLongLived));
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) set(blocks_[i], pieces[i]);
  }

  Pool& pool() { return pool_; }
  // The block of the i-th piece.
  [[nodiscard]] BlockId block(std::size_t i) const { return blocks_[i]; }

 private:
  static Grains total(const std::vector<PieceSpec>& pieces) {
    Grains sum = 0;
    for (const PieceSpec& piece : pieces) sum += piece.grains;
    return sum;
  }

  void set(BlockId block, const PieceSpec& piece) {
    switch (piece.kind) {
      case PieceSpec::kHole:
        static_cast<void>(pool_.free(block));
        break;
      case PieceSpec::kPinned:
        pool_.pin(block);
        [[fallthrough]];
      case PieceSpec::kEvictable:
        pool_.set_evictable(block, piece.cost, piece.last_use);
        break;
      case PieceSpec::kMovable:
        pool_.set_tenure(block, Tenure::kMovable);
        break;
      case PieceSpec::kStays:
        break;
    }
  }

  FakeBacking backing_;
  Pool pool_;
  std::vector<BlockId> blocks_;
};

}  // namespace coop::testing
