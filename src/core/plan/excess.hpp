#pragma once

// How much of what is too much a gap would take away.
//
// Note [Weighted excess]
//
// The excess of a moment is what it holds beyond the budget. A version that is dropped in a gap takes
// min(its bytes, excess) from each of the gap's moments. Moments with the largest excess are the hardest to
// mend and count most: a moment weighs (excess / worst excess)^4. With all moments equal the search is drawn
// to long gaps that cover much easy excess, and then has to pay for the peak as well.
//
// The sum over a gap's moments of min(bytes, excess) * weight is read off prefix sums, one array for each of
// the sizes worst, worst/2, worst/4, ...; between two sizes it is interpolated.

#include <array>
#include <cstddef>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/step_evaluation.hpp"

namespace coop {

class Excess {
 public:
  void measure(const std::vector<Bytes>& memory, Bytes budget);
  [[nodiscard]] double worst() const { return worst_; }
  [[nodiscard]] double total() const { return total_; }  // weighted
  // Weighted, and at most by a few parts in a hundred too little.
  [[nodiscard]] double taken_by(const Gap& gap, Bytes bytes) const;

  // The weighted excess, in units of `worst`, where that is the worst that counts.
  [[nodiscard]] static double weigh(const std::vector<Bytes>& memory, Bytes budget, double worst);

 private:
  static constexpr std::size_t kSizes = 14;

  std::size_t first_ = 0;  // moment with an excess
  std::size_t last_ = 0;
  double worst_ = 0;
  double total_ = 0;
  std::array<std::vector<double>, kSizes> sums_;  // over the moments before
};

}  // namespace coop
