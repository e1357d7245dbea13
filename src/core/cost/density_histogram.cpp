#include "core/cost/density_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace coop {
namespace {

// The exponent and the first two bits behind the point: quarters of an octave, near enough, without
// a logarithm.
constexpr unsigned kBitsBehind = 50;
constexpr int kExponentBias = 1023;
constexpr int kFirstBucket = (kExponentBias + DensityHistogram::kLeastExponent) * 4;
static_assert(DensityHistogram::kBucketsPerOctave == 4);

}  // namespace

std::size_t DensityHistogram::bucket_of(double cost, Bytes bytes) {
  const double density = std::max(1e-3, cost) / static_cast<double>(std::max<Bytes>(bytes, 1));
  const auto quarters = static_cast<int>(std::bit_cast<std::uint64_t>(density) >> kBitsBehind);
  return static_cast<std::size_t>(std::clamp(quarters - kFirstBucket, 0, kBuckets - 1));
}

double DensityHistogram::quantile(double share) const {
  const double wanted = share * total_;
  double below = 0;
  for (int i = 0; i < kBuckets; ++i) {
    below += bytes_in_[static_cast<std::size_t>(i)];
    if (below <= 0 || below < wanted) continue;
    const auto end = static_cast<std::uint64_t>(i) + 1 + kFirstBucket;
    return std::bit_cast<double>(end << kBitsBehind);
  }
  return 0;
}

}  // namespace coop
