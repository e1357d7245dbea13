#include "core/policy/window_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace coop {
namespace {

constexpr std::size_t kHalf = Chunk::kCapacity / 2;

// Right ends that are taken together at the least.
constexpr std::size_t kSmallGroup = 8;

// How far a sum may exceed the best window. Doubles hold sixteen digits; six of them go here.
constexpr double kSumLimit = 1e6;
// How wrong a difference of two sums may be, as part of the larger: 2^-53 for each piece between.
constexpr double kRounding = 1e-12;

constexpr auto kBit = [] {
  std::array<std::uint32_t, kHalf> bits{};
  for (std::size_t i = 0; i < kHalf; ++i) bits[i] = std::uint32_t{1} << i;
  return bits;
}();

// Bit i: scores[i] >= limit. Written as masks, which become vector instructions; a choice would
// become a branch that nobody can predict.
std::uint32_t at_least(const float* scores, float limit) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kHalf; ++i) {
    const std::uint32_t all_ones_if = 0U - static_cast<std::uint32_t>(scores[i] >= limit);
    bits |= all_ones_if & kBit[i];
  }
  return bits;
}

// How many of the ascending addresses from `begin` on are at most `reach`. Counts them all,
// thirty-two at a time: to stop at the first that is not would be another branch that nobody can
// predict.
std::size_t pieces_to(Grains reach, const Grains* begin) {
  std::size_t total = 0;
  for (;;) {
    std::int32_t n = 0;
    for (std::size_t i = 0; i < kHalf; ++i)
      n += static_cast<std::int32_t>(begin[total + i] <= reach);
    total += static_cast<std::size_t>(n);
    if (n < static_cast<std::int32_t>(kHalf)) return total;
  }
}

}  // namespace

void WindowSearch::begin(const AddressOrder& order, Grains request, Grains limit, double credit) {
  request_ = request;
  limit_ = limit;
  credit_ = credit;
  largest_ = 0;
  pieces_ = 0;
  run_begin_ = 0;
  left_ = 0;
  summed_ = 0;
  best_value_ = std::numeric_limits<double>::infinity();
  bound_ = std::numeric_limits<double>::infinity();
  best_ = {};
  const std::size_t room = order.piece_count() + Chunk::kCapacity + kHalf + 1;
  if (sum_.size() < room) {  // the last to grow: one that could not left the others longer
    begin_.resize(room);
    score_.resize(room);
    sum_.resize(room);
  }
  begin_[0] = 0;
  sum_[0] = 0;
  // Large groups skip more at once, small ones are tighter bounds: a fraction of a window's length.
  const double window_pieces = static_cast<double>(request) *
                               static_cast<double>(order.piece_count()) /
                               static_cast<double>(order.total());
  is_long_ = window_pieces > 2 * Chunk::kCapacity;
  group_ = static_cast<std::size_t>(std::clamp(window_pieces / 6, kSmallGroup * 1.0, 64.0));
}

// The pieces of the chunk that no window can contain.
std::uint64_t WindowSearch::dividing(const Chunk& chunk, std::size_t first) const {
  // A window of many pieces costs more than any one of them: not worth looking.
  if (is_long_) return chunk.fixed;
  // No float below the bound may count as above it.
  auto limit = static_cast<float>(bound_);
  if (limit < bound_) limit *= 1.0F + std::numeric_limits<float>::epsilon();
  const std::uint64_t bits = at_least(&score_[first], limit) |
                             std::uint64_t{at_least(&score_[first + kHalf], limit)} << kHalf;
  return bits | chunk.fixed;
}

void WindowSearch::add(const Chunk& chunk) {
  const std::size_t first = pieces_;
  const auto count = static_cast<std::size_t>(chunk.count);
  std::memcpy(&begin_[first], chunk.begin.data(), (count + 1) * sizeof(Grains));
  pieces_ += count;
  if (credit_ > 0) {
    for (std::size_t i = 0; i < count; ++i) {
      largest_ = std::max(largest_, chunk.begin[i + 1] - chunk.begin[i]);
    }
    bound_ = best_value_ + credit_ * static_cast<double>(largest_);
  }
  std::fill_n(&begin_[pieces_ + 1], kHalf, std::numeric_limits<Grains>::max());  // for pieces_to

  // Runs of pieces between those that divide. Most are too short, and then this loop is all there is to
  // do; so it is kept in locals, and goes from run to run instead of from piece to piece.
  const Grains* const begin = begin_.data();
  std::uint64_t open = Chunk::low_bits(chunk.count) & ~dividing(chunk, first);
  if (begin[pieces_] > limit_) {
    const auto* const end = std::upper_bound(begin + first + 1, begin + pieces_ + 1, limit_);
    open &= Chunk::low_bits(static_cast<int>(end - (begin + first + 1)));
  }
  std::size_t run_begin = run_begin_;  // the first run may have begun in an earlier chunk
  std::size_t run_end = first;
  while (open != 0) {
    const int skipped = std::countr_zero(open);
    const int length = std::countr_one(open >> skipped);
    open &= ~(Chunk::low_bits(length) << skipped);
    const std::size_t from = first + static_cast<std::size_t>(skipped);
    if (from != first) run_begin = from;
    run_end = from + static_cast<std::size_t>(length);
    if (begin[run_end] - begin[run_begin] >= request_) look_at_right_ends(run_begin, from, run_end);
  }
  run_begin_ = run_end == pieces_ ? run_begin : pieces_;
}

// Makes sum_ good for the run up to piece `last`.
void WindowSearch::sum_up(std::size_t run_begin, std::size_t last) {
  std::size_t i = summed_;
  if (i <= run_begin) {
    i = run_begin;
    sum_[i] = 0;
  }
  double before = sum_[i];
  // In fours, so that each addition need not wait for the one before.
  for (; i + 4 <= last; i += 4) {
    const double a = score_[i];
    const double ab = a + static_cast<double>(score_[i + 1]);
    const double c = score_[i + 2];
    sum_[i + 1] = before + a;
    sum_[i + 2] = before + ab;
    sum_[i + 3] = before + (ab + c);
    before += ab + (c + static_cast<double>(score_[i + 3]));
    sum_[i + 4] = before;
  }
  for (; i < last; ++i) {
    before += static_cast<double>(score_[i]);
    sum_[i + 1] = before;
  }
  summed_ = last;
}

// What the pieces [left, right) cost, less what rounding may have added.
double WindowSearch::at_least_between(std::size_t left, std::size_t right) const {
  return sum_[right] - sum_[left] - sum_[right] * kRounding;
}

void WindowSearch::restart_sum(std::size_t from, std::size_t last) {
  summed_ = 0;
  sum_up(from, last);
}

// Windows of the run that begins at `run_begin` whose last piece is in [first, last).
void WindowSearch::look_at_right_ends(std::size_t run_begin, std::size_t first, std::size_t last) {
  sum_up(run_begin, last);
  std::size_t right = first + 1;
  while (begin_[right] - begin_[run_begin] < request_) ++right;
  const std::size_t left = std::max(left_, run_begin);
  const auto closely = [this](std::size_t l, std::size_t r, std::size_t e) {
    look_closely(l, r, e);
  };
  const auto in_small_groups = [&](std::size_t l, std::size_t r, std::size_t e) {
    look_at_groups(l, r, e, kSmallGroup, closely);
  };
  left_ = group_ > 2 * kSmallGroup ? look_at_groups(left, right, last, group_, in_small_groups)
                                   : look_at_groups(left, right, last, group_, closely);
}

// Right ends from `right` to `last`, in groups; look(left, right, last) for those that may end a better
// window. Takes the left end for the right end before them, returns that for the last.
template <typename Look>
std::size_t WindowSearch::look_at_groups(std::size_t left, std::size_t right, std::size_t last,
                                         std::size_t group, const Look& look) {
  while (right <= last) {
    const std::size_t group_end = std::min(last, right + group - 1);
    const Grains reach = begin_[group_end] - request_;
    const std::size_t group_left = left;
    if (sum_[left] > kSumLimit * bound_) restart_sum(left, summed_);
    left += pieces_to(reach, &begin_[left + 1]);
    if (at_least_between(left, right) < bound_) look(group_left, right, group_end);
    right = group_end + 1;
  }
  return left;
}

void WindowSearch::look_closely(std::size_t left, std::size_t first, std::size_t last) {
  for (std::size_t right = first; right <= last; ++right) {
    const Grains reach = begin_[right] - request_;
    while (begin_[left + 1] <= reach) ++left;
    if (at_least_between(left, right) >= bound_) continue;
    double cost = sum_[right] - sum_[left];
    if (sum_[left] > kSumLimit * cost) {  // a difference of which nothing is certain
      restart_sum(left, summed_);
      cost = sum_[right];
    }
    const Grains excess = begin_[right] - begin_[left] - request_;
    const double value = cost - credit_ * static_cast<double>(excess - excess % request_);
    if (!(value < best_value_)) continue;
    best_value_ = value;
    bound_ = value + credit_ * static_cast<double>(largest_);
    best_cost_ = cost;
    best_ = {begin_[left], begin_[right]};
  }
}

std::optional<Window> WindowSearch::best() const {
  if (std::isinf(best_value_)) return std::nullopt;
  return Window{best_, best_cost_};
}

}  // namespace coop
