#pragma once

// Note [The search for a window]
//
// A window is a run of neighbouring pieces, none of them fixed, at least as long as the request. Its
// cost is the sum of the scores of the blocks in it; holes cost nothing. Wanted: the cheapest.
//
// Credit. A block is evicted whole, so a window may free more than was asked for, and what is left over
// serves later requests. Requests of one size come in runs: what is left over is of use if another of them fits.
// `credit` is what a grain of it is worth; what counts is cost - credit * excess, in whole requests.
//
//     pieces   | 9 |  | 1 | 2 |####| 3 | 1 |   | 7 |          #### fixed
//                  ^----------^                               a window: left and right end
//
// For every right end only one left end matters, the rightmost that makes the window long enough:
// costs are not negative, so a longer window is never cheaper. (With credit it might be; but what is not
// needed now is better evicted when it is.) Moving both ends from left to right
// sees all of these windows in one pass. With begin[i] the address and sum[i] the cost of everything
// before piece i, the window [l, r) is begin[r] - begin[l] long and costs sum[r] - sum[l].
//
// That pass is bound not by arithmetic but by branches that cannot be predicted: how far the left end
// moves depends on the sizes, which look random. Two bounds skip most of them, and change no result:
//   1. A piece that alone costs as much as the best window so far cannot be part of a better one. It
//      divides the pool as a fixed piece does. Most runs between such pieces are too short to hold a
//      window, and for these nothing is added up at all.
//   2. Right ends are taken in groups. No window that ends in the group costs less than from the last
//      right end's left end to the first right end; unless that is below the best, the group is done.
// With credit, "below the best" is below the best and all the credit that a window can get: its excess is
// less than its first piece, so less than the largest piece so far.
//
// Sums. Scores may lie thirty orders of magnitude apart, and a difference of two large sums says
// nothing about a small window. So a sum begins anew in every run, in which no piece costs as much as
// the best window; within a run it begins anew at the left end where it exceeds what it is to be
// compared with by kSumLimit; and no window is skipped for a difference that rounding could explain.

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
  // Only windows that end at or before `limit` count. `credit` is for a grain beyond the request.
  void begin(const AddressOrder& order, Grains request, Grains limit, double credit = 0);
  // Chunks in address order: their scores are written to where scores_of_next() says, then the chunk is
  // added. Scores are 0 for holes and fixed pieces.
  [[nodiscard]] float* scores_of_next() { return &score_[pieces_]; }
  void add(const Chunk& chunk);
  [[nodiscard]] std::optional<Window> best() const;

 private:
  void look_at_right_ends(std::size_t run_begin, std::size_t first, std::size_t last);
  template <typename Look>
  std::size_t look_at_groups(std::size_t left, std::size_t right, std::size_t last,
                             std::size_t group, const Look& look);
  void look_closely(std::size_t left, std::size_t first, std::size_t last);
  void sum_up(std::size_t run_begin, std::size_t last);
  [[nodiscard]] double at_least_between(std::size_t left, std::size_t right) const;
  void restart_sum(std::size_t from, std::size_t last);
  [[nodiscard]] std::uint64_t dividing(const Chunk& chunk, std::size_t first) const;

  Grains request_ = 0;
  Grains limit_ = 0;
  std::size_t group_ = 0;
  bool is_long_ = false;
  std::size_t pieces_ = 0;
  std::size_t run_begin_ = 0;  // first piece after the last that divides
  std::size_t left_ = 0;       // left end for the last right end that was looked at
  std::size_t summed_ = 0;     // sum_ is good from the run's begin up to here
  double credit_ = 0;
  Grains largest_ = 0;                                           // piece that was seen
  double best_value_ = std::numeric_limits<double>::infinity();  // cost less credit
  double bound_ = std::numeric_limits<double>::infinity();  // what costs this much cannot be better
  double best_cost_ = 0;
  Extent best_;
  // Of the pieces seen so far.
  std::vector<Grains> begin_;  // and the end of the last
  std::vector<float> score_;
  std::vector<double> sum_;  // of all scores before it in its run
};

// See WindowSearch::begin.
template <Score S>
std::optional<Window> cheapest_window(const AddressOrder& order, Grains request, double now,
                                      const S& score, WindowSearch& search,
                                      Grains limit = std::numeric_limits<Grains>::max(),
                                      double credit = 0) {
  static_assert(!WantsFreeBeside<S>, "a window contains the free space beside its blocks");
  static constexpr ChunkScores kNothingBeside{};
  search.begin(order, request, limit, credit);
  for (const Chunk* chunk : order.chunks()) {
    if (chunk->begin[0] >= limit) break;
    score_chunk(*chunk, now, score, 0.0F, kNothingBeside, search.scores_of_next());
    search.add(*chunk);
  }
  return search.best();
}

}  // namespace coop
