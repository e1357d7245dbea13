#include "core/cost/density_split.hpp"

#include <cmath>

namespace coop {

void DensitySplit::observe(double cost, Bytes bytes) {
  histogram_.add(cost, bytes);
  ++observations_;
  // Often while little is known, seldom later.
  if (observations_ <= 8 || observations_ % kObservationsPerUpdate == 0) move_border();
}

bool DensitySplit::is_cheap(double cost, Bytes bytes) const {
  return DensityHistogram::bucket_of(cost, bytes) < border_;
}

void DensitySplit::move_border() {
  constexpr std::size_t kBuckets = DensityHistogram::kBuckets;
  constexpr double kClearlyBetter = 1.1;
  double total = 0;
  double total_moment = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    total += histogram_.bytes_in(i);
    total_moment += histogram_.bytes_in(i) * static_cast<double>(i);
  }
  double left = 0;
  double left_moment = 0;
  double best = 0;
  double current = 0;
  std::size_t first_best = 0;
  std::size_t last_best = 0;
  for (std::size_t i = 0; i + 1 < kBuckets; ++i) {
    left += histogram_.bytes_in(i);
    left_moment += histogram_.bytes_in(i) * static_cast<double>(i);
    const double right = total - left;
    if (left <= 0 || right <= 0) continue;
    const double distance = left_moment / left - (total_moment - left_moment) / right;
    if (std::abs(distance) < DensityHistogram::kBucketsPerOctave)
      continue;  // one kind, with some spread
    const double between = left * right * distance * distance;
    if (i + 1 == border_) current = between;
    if (between > best) {
      best = between;
      first_best = i + 1;
      last_best = i + 1;
    } else if (between == best && last_best == i) {
      last_best = i + 1;
    }
  }
  // Blocks lie where the border was when they were made: it does not go to and fro for next to nothing.
  if (best < kClearlyBetter * current) return;
  // Every border inside an empty gap parts alike: take the middle of the gap. With one kind only
  // there is nothing to part, and all of it is expensive.
  border_ = (first_best + last_best) / 2;
}

}  // namespace coop
