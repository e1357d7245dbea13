#include "core/cost/density_split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace coop {

std::size_t DensitySplit::bucket_of(double cost, Bytes bytes) {
  const double density = std::max(1e-3, cost) / static_cast<double>(std::max<Bytes>(bytes, 1));
  // The exponent and the first two bits behind the point: quarters of an octave, near enough, without
  // a logarithm.
  static_assert(kBucketsPerOctave == 4);
  constexpr int kExponentBias = 1023;
  const auto quarters = static_cast<int>(std::bit_cast<std::uint64_t>(density) >> 50U);
  const int place = quarters - (kExponentBias + kLeastExponent) * kBucketsPerOctave;
  return static_cast<std::size_t>(std::clamp(place, 0, kBuckets - 1));
}

void DensitySplit::observe(double cost, Bytes bytes) {
  bytes_in_[bucket_of(cost, bytes)] += static_cast<double>(bytes);
  ++observations_;
  // Often while little is known, seldom later.
  if (observations_ <= 8 || observations_ % kObservationsPerUpdate == 0) move_border();
}

bool DensitySplit::is_cheap(double cost, Bytes bytes) const {
  return bucket_of(cost, bytes) < border_;
}

void DensitySplit::move_border() {
  double total = 0;
  double total_moment = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    total += bytes_in_[i];
    total_moment += bytes_in_[i] * static_cast<double>(i);
  }
  double left = 0;
  double left_moment = 0;
  double best = 0;
  std::size_t first_best = 0;
  std::size_t last_best = 0;
  for (std::size_t i = 0; i + 1 < kBuckets; ++i) {
    left += bytes_in_[i];
    left_moment += bytes_in_[i] * static_cast<double>(i);
    const double right = total - left;
    if (left <= 0 || right <= 0) continue;
    const double distance = left_moment / left - (total_moment - left_moment) / right;
    if (std::abs(distance) < kBucketsPerOctave) continue;  // one kind, with some spread
    const double between = left * right * distance * distance;
    if (between > best) {
      best = between;
      first_best = i + 1;
      last_best = i + 1;
    } else if (between == best && last_best == i) {
      last_best = i + 1;
    }
  }
  // Every border inside an empty gap parts alike: take the middle of the gap. With one kind only
  // there is nothing to part, and all of it is expensive.
  border_ = (first_best + last_best) / 2;
}

}  // namespace coop
