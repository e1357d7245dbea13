#pragma once

// How many bytes cost how much each: a histogram over the logarithm of cost density, nanoseconds per byte.

#include <array>
#include <cstddef>

#include "core/base/bytes.hpp"

namespace coop {

class DensityHistogram {
 public:
  // Quarter octaves around 2^-20 to 2^20 ns per byte: from a fast copy to the dearest product.
  static constexpr int kBucketsPerOctave = 4;
  static constexpr int kLeastExponent = -20;
  static constexpr int kBuckets = 40 * kBucketsPerOctave;

  [[nodiscard]] static std::size_t bucket_of(double cost, Bytes bytes);

  void add(double cost, Bytes bytes) {
    bytes_in_[bucket_of(cost, bytes)] += static_cast<double>(bytes);
    total_ += static_cast<double>(bytes);
  }
  [[nodiscard]] double bytes_in(std::size_t bucket) const { return bytes_in_[bucket]; }
  // That of the cheapest `share` of all bytes at the most, to a quarter octave; 0 if there are none.
  [[nodiscard]] double quantile(double share) const;

 private:
  std::array<double, kBuckets> bytes_in_{};
  double total_ = 0;
};

}  // namespace coop
