#pragma once

// Tells cheap blocks from expensive ones by their measured cost density, nanoseconds per byte.
//
// Networks have two kinds of operators: those bound by memory (activations, norms) and those bound
// by arithmetic (convolutions, matrix products), one or two orders of magnitude apart. Where the
// border lies depends on network and device, so it is learned: blocks are counted, by bytes, in a
// histogram over the logarithm of their density, and the border is put where it parts the histogram
// best (the largest variance between the two sides, as in Otsu's threshold for images), once that is a tenth better than
// where it is. Sides less than an octave apart are one kind, and expensive.

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.hpp"
#include "core/cost/density_histogram.hpp"

namespace coop {

class DensitySplit {
 public:
  void observe(double cost, Bytes bytes);
  // Until something has been observed, everything is expensive.
  [[nodiscard]] bool is_cheap(double cost, Bytes bytes) const;

 private:
  static constexpr std::uint32_t kObservationsPerUpdate = 64;

  void move_border();

  DensityHistogram histogram_;
  std::size_t border_ = 0;  // buckets before it are cheap
  std::uint32_t observations_ = 0;
};

}  // namespace coop
