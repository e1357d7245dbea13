#include "sim/simulator/smallest_budget.hpp"

#include <algorithm>

#include "core/pool/grain.hpp"
#include "sim/simulator/demand.hpp"

namespace coop::sim {
namespace {

constexpr Bytes kResolutionOfPeak = 1000;
constexpr Bytes kMostTimesPeak = 8;

}  // namespace

std::optional<SmallestBudget> find_smallest_budget(const Trace& trace, SimulationOptions options) {
  const Bytes peak = std::clamp(measure_demand(trace).peak_bytes, kGrainBytes, kMaxPoolBytes);
  const Bytes most = std::min(
      peak > kMaxPoolBytes / kMostTimesPeak ? kMaxPoolBytes : peak * kMostTimesPeak, kMaxPoolBytes);
  SmallestBudget found{.resolution = std::max(peak / kResolutionOfPeak, kGrainBytes)};
  options.engine.observer = nullptr;  // of one run, not of a dozen

  const auto works = [&](Bytes budget) {
    options.budget = budget;
    SimulationResult result = simulate(trace, options);
    if (result.is_ok()) {
      found.bytes = budget;
      return true;
    }
    found.too_small = budget;
    found.tightest = std::move(result.failure);
    return false;
  };

  // Addresses and rounding may take more than the peak.
  for (Bytes budget = peak; !works(budget); budget = std::min(budget + budget / 4, most)) {
    if (budget == most) return std::nullopt;
  }
  while (found.bytes - found.too_small > found.resolution) {
    const Bytes middle = found.too_small + (found.bytes - found.too_small) / 2;
    if (middle < kGrainBytes) break;
    works(middle);
  }
  return found;
}

}  // namespace coop::sim
