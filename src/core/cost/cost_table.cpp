#include "core/cost/cost_table.hpp"

#include <algorithm>

namespace coop {

double CostTable::observe(std::uint64_t kind, double measured) {
  if (kinds_.size() >= most_kinds_ && !kinds_.contains(kind)) kinds_.clear();
  Kind& known = kinds_[kind];
  if (known.runs < kRuns) {
    const auto end = known.sorted.begin() + known.runs;
    const auto time = static_cast<float>(measured);
    const auto place = std::upper_bound(known.sorted.begin(), end, time);
    std::move_backward(place, end, end + 1);
    *place = time;
    ++known.runs;
  }
  return known.sorted[(known.runs - 1) / 4];
}

}  // namespace coop
