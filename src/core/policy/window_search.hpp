#pragma once

// Note [The search for a window]
//
// A window is a run of neighbouring pieces, none of them fixed, at least as long as the request.
// Its cost is the sum of the scores of the blocks in it; holes cost nothing. Wanted: the cheapest.
//
//     pieces   | 9 |  | 1 | 2 |####| 3 | 1 |   | 7 |          #### fixed
//                  ^-----------^                              a window: left and right end
//
// For every right end only one left end matters, the rightmost that makes the window long enough:
// costs are not negative, so a longer window is never cheaper. Moving both ends from left to right
// sees all of these windows in one pass. With begin[i] the address and sum[i] the cost of
// everything before piece i, the window [l, r) is begin[r] - begin[l] long and costs sum[r] -
// sum[l].
//
// That pass is bound not by arithmetic but by branches that cannot be predicted: how far the left
// end moves depends on the sizes, which look random. Two bounds skip most of them, and change no
// result:
//   1. A piece that alone costs as much as the best window so far cannot be part of a better one.
//   It
//      divides the pool as a fixed piece does, and runs between such pieces are mostly too short.
//   2. Right ends are taken in groups. No window that ends in the group costs less than from the
//   last
//      right end's left end to the first right end; unless that is below the best, the group is
//      done.
//
// Sums cannot go wrong: scores are finite and positive, a sum only ever grows, and what the search
// returns is a window, whose cost the caller may add up afresh.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/policy/score.hpp"
#include "core/pool/address_order.hpp"

namespace coop {

struct Window {
  Extent extent;
  double cost = 0;
};

// The part of the search that is the same for every score. Keeps its memory from search to search.
class WindowSearch {
 public:
  void begin(const AddressOrder& order, Grains request);
  // Chunks in address order. scores[i] is 0 for holes and does not matter for fixed pieces.
  void add(const Chunk& chunk, const ChunkScores& scores);
  [[nodiscard]] std::optional<Window> best() const;

 private:
  void look_at_right_ends(std::size_t run_begin, std::size_t first, std::size_t last);
  void look_closely(std::size_t left, std::size_t first, std::size_t last);
  [[nodiscard]] std::uint64_t dividing(const Chunk& chunk, const ChunkScores& scores) const;
  void append(const Chunk& chunk, const ChunkScores& scores);

  Grains request_ = 0;
  std::size_t group_ = 0;
  bool is_long_ = false;
  std::size_t pieces_ = 0;
  std::size_t run_begin_ = 0;  // first piece after the last that divides
  std::size_t left_ = 0;       // left end for the last right end that was looked at
  double best_cost_ = std::numeric_limits<double>::infinity();
  Extent best_;
  std::vector<Grains> begin_;  // address of each piece seen so far, and the end of the last
  std::vector<double> sum_;    // cost of all pieces before it
};

template <Score S>
std::optional<Window> cheapest_window(const AddressOrder& order, Grains request, double now,
                                      const S& score, WindowSearch& search) {
  static_assert(!WantsFreeBeside<S>, "a window contains the free space beside its blocks");
  static constexpr ChunkScores kNothingBeside{};
  search.begin(order, request);
  ChunkScores scores{};
  for (const Chunk* chunk : order.chunks()) {
    score_chunk(*chunk, now, score, 0.0F, kNothingBeside, scores);
    search.add(*chunk, scores);
  }
  return search.best();
}

}  // namespace coop
