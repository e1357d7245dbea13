#include "sim/simulator/smallest_budget.hpp"

#include <algorithm>
#include <utility>

#include "core/pool/grain.hpp"
#include "sim/simulator/demand.hpp"

namespace coop::sim {
namespace {

constexpr Bytes kResolutionOfPeak = 1000;
constexpr Bytes kMostTimesPeak = 8;

class Search {
 public:
  Search(const Trace& trace, SimulationOptions options, const OnTrial& on_trial)
      : trace_(trace),
        options_(std::move(options)),
        on_trial_(on_trial),
        peak_(std::clamp(measure_demand(trace).peak_bytes, kGrainBytes, kMaxPoolBytes)) {
    options_.engine.observer = nullptr;  // of one run, not of a dozen
    options_.most_recomputing = kMostRecomputing;
    found_.resolution = std::max(peak_ / kResolutionOfPeak, kGrainBytes);
  }

  std::optional<SmallestBudget> run() {
    try {
      if (!find_one_that_works()) return std::nullopt;
      halve();
    } catch (const Stopped&) {
      found_.is_final = false;
    }
    return std::move(found_);
  }

 private:
  // Addresses and rounding may take more than the peak.
  bool find_one_that_works() {
    const Bytes most =
        peak_ > kMaxPoolBytes / kMostTimesPeak ? kMaxPoolBytes : peak_ * kMostTimesPeak;
    for (Bytes budget = peak_; !works(budget); budget = std::min(budget + budget / 4, most)) {
      if (budget == most) return false;
    }
    return true;
  }

  void halve() {
    while (found_.bytes - found_.too_small > found_.resolution) {
      const Bytes middle = found_.too_small + (found_.bytes - found_.too_small) / 2;
      if (middle < kGrainBytes) break;
      works(middle);
    }
  }

  bool works(Bytes budget) {
    if (on_trial_) {
      on_trial_({.budget = budget, .known = found_, .before = trials_, .to_come = to_come()});
    }
    ++trials_;
    options_.budget = budget;
    SimulationResult result = simulate(trace_, options_);
    if (result.is_ok()) {
      found_.bytes = budget;
      return true;
    }
    found_.too_small = budget;
    found_.is_time_bound |= result.failure->is_too_slow;
    found_.tightest = std::move(result.failure);
    return false;
  }

  [[nodiscard]] std::size_t to_come() const {
    const Bytes upper = found_.bytes == 0 ? peak_ : found_.bytes;
    const Bytes lower = std::min(found_.too_small, upper);
    std::size_t halvings = found_.bytes == 0 ? 1 : 0;
    for (Bytes left = upper - lower; left > found_.resolution; left -= left / 2) ++halvings;
    return std::max<std::size_t>(halvings, 1);
  }

  const Trace& trace_;
  SimulationOptions options_;
  const OnTrial& on_trial_;
  Bytes peak_;
  SmallestBudget found_;
  std::size_t trials_ = 0;
};

}  // namespace

std::optional<SmallestBudget> find_smallest_budget(const Trace& trace, SimulationOptions options,
                                                   const OnTrial& on_trial) {
  return Search(trace, std::move(options), on_trial).run();
}

}  // namespace coop::sim
