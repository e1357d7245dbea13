#pragma once

// Tells cheap blocks from expensive ones by their measured cost density, nanoseconds per byte.
//
// Networks have two kinds of operators: those bound by memory (activations, norms) and those bound
// by arithmetic (convolutions, matrix products), one or two orders of magnitude apart. Where the
// border lies depends on network and device, so it is learned: blocks are counted, by bytes, in a
// histogram over the logarithm of their density, and the border is put where it parts the histogram
// best (the largest variance between the two sides, as in Otsu's threshold for images). Sides less than an
// octave apart are one kind, and expensive.

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/bytes.hpp"

namespace coop {

class DensitySplit {
 public:
  void observe(double cost, Bytes bytes);
  // Until something has been observed, everything is expensive.
  [[nodiscard]] bool is_cheap(double cost, Bytes bytes) const;

 private:
  // Quarter octaves around 2^-20 to 2^20 ns per byte: from a fast copy to the dearest product.
  static constexpr int kBucketsPerOctave = 4;
  static constexpr int kLeastExponent = -20;
  static constexpr int kBuckets = 40 * kBucketsPerOctave;
  static constexpr std::uint32_t kObservationsPerUpdate = 64;

  [[nodiscard]] static std::size_t bucket_of(double cost, Bytes bytes);
  void move_border();

  std::array<double, kBuckets> bytes_in_{};
  std::size_t border_ = 0;  // buckets before it are cheap
  std::uint32_t observations_ = 0;
};

}  // namespace coop
