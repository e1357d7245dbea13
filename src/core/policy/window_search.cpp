#include "core/policy/window_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace coop {

void WindowSearch::begin(const AddressOrder& order, Grains request) {
  request_ = request;
  pieces_ = 0;
  run_begin_ = 0;
  left_ = 0;
  best_cost_ = std::numeric_limits<double>::infinity();
  best_ = {};
  const std::size_t room = order.piece_count() + Chunk::kCapacity + 1;
  if (begin_.size() < room) {
    begin_.resize(room);
    sum_.resize(room);
  }
  begin_[0] = 0;
  sum_[0] = 0;
  // Large groups skip more at once, small ones are tighter bounds: a fraction of a window's length.
  const double window_pieces = static_cast<double>(request) *
                               static_cast<double>(order.piece_count()) /
                               static_cast<double>(order.total());
  group_ = static_cast<std::size_t>(std::clamp(window_pieces / 6, 8.0, 64.0));
}

void WindowSearch::append(const Chunk& chunk, const ChunkScores& scores) {
  const auto count = static_cast<std::size_t>(chunk.count);
  std::memcpy(&begin_[pieces_], chunk.begin.data(), (count + 1) * sizeof(Grains));
  double* const sum = &sum_[pieces_];
  double before = sum[0];
  // In fours, so that each addition need not wait for the one before. Scores past the end are 0.
  for (std::size_t i = 0; i < count; i += 4) {
    const double a = scores[i];
    const double ab = a + static_cast<double>(scores[i + 1]);
    const double c = scores[i + 2];
    sum[i] = before;
    sum[i + 1] = before + a;
    sum[i + 2] = before + ab;
    sum[i + 3] = before + (ab + c);
    before += ab + (c + static_cast<double>(scores[i + 3]));
  }
  sum[count] = before;
  pieces_ += count;
}

std::uint64_t WindowSearch::dividing(const Chunk& chunk, const ChunkScores& scores) const {
  // The least float that is not below the best cost: rounding must not make a barrier of a piece
  // that could still be part of a better window.
  auto limit = static_cast<float>(best_cost_);
  if (limit < best_cost_) limit = std::nextafter(limit, std::numeric_limits<float>::infinity());
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < Chunk::kCapacity; ++i) {
    bits |= static_cast<std::uint64_t>(scores[i] >= limit) << i;
  }
  return (bits & Chunk::low_bits(chunk.count)) | chunk.fixed;
}

void WindowSearch::add(const Chunk& chunk, const ChunkScores& scores) {
  const std::size_t first = pieces_;
  append(chunk, scores);
  std::size_t from = first;
  for (const int slot : SlotsOf(dividing(chunk, scores))) {
    const std::size_t divider = first + static_cast<std::size_t>(slot);
    look_at_right_ends(from, divider);
    start_run(divider + 1);
    from = divider + 1;
  }
  look_at_right_ends(from, pieces_);
}

void WindowSearch::start_run(std::size_t piece) {
  run_begin_ = piece;
  left_ = piece;
}

// Windows of the current run whose last piece is in [first, last).
void WindowSearch::look_at_right_ends(std::size_t first, std::size_t last) {
  if (first >= last || begin_[last] - begin_[run_begin_] < request_) return;
  std::size_t right = first + 1;
  while (begin_[right] - begin_[run_begin_] < request_) ++right;
  while (right <= last) {
    const std::size_t group_end = std::min(last, right + group_ - 1);
    const Grains reach = begin_[group_end] - request_;
    std::size_t left = left_;
    while (begin_[left + 1] <= reach) ++left;
    if (sum_[right] - sum_[left] < best_cost_) look_closely(left_, right, group_end);
    left_ = left;
    right = group_end + 1;
  }
}

void WindowSearch::look_closely(std::size_t left, std::size_t first, std::size_t last) {
  for (std::size_t right = first; right <= last; ++right) {
    const Grains reach = begin_[right] - request_;
    while (begin_[left + 1] <= reach) ++left;
    const double cost = sum_[right] - sum_[left];
    if (cost < best_cost_) {
      best_cost_ = cost;
      best_ = {begin_[left], begin_[right]};
    }
  }
}

std::optional<Window> WindowSearch::best() const {
  if (std::isinf(best_cost_)) return std::nullopt;
  return Window{best_, best_cost_};
}

}  // namespace coop
