#include "core/plan/step_plan.hpp"

#include <algorithm>

namespace coop {

bool StepPlan::is_absent(Version version, std::size_t call) const {
  const std::vector<Absence>& all = absences[version];
  // The last that begins at or before the call.
  const auto after =
      std::upper_bound(all.begin(), all.end(), call,
                       [](std::size_t at, const Absence& absence) { return at < absence.from; });
  return after != all.begin() && call < std::prev(after)->until;
}

std::span<const StepPlan::Place> StepPlan::places(std::size_t call, std::size_t by) const {
  const std::vector<Allocations>& all = allocations[call];
  const auto found = std::lower_bound(
      all.begin(), all.end(), by,
      [](const Allocations& allocation, std::size_t wanted) { return allocation.by < wanted; });
  if (found == all.end() || found->by != by) return {};
  return found->places;
}

}  // namespace coop
