#include "cli/commands/simulating.hpp"

#include <cmath>
#include <utility>

#include "cli/sweep/progress.hpp"
#include "cli/text/format.hpp"
#include "core/base/bytes.hpp"

namespace coop::cli {
namespace {

std::string describe(const LoadedTrace& loaded, const sim::Trial& trial) {
  std::string text = loaded.name + " in " + budget_text(loaded, trial.budget);
  if (trial.known.bytes > 0) text += "; " + format_bytes(trial.known.bytes) + " is enough";
  if (trial.known.too_small > 0) text += "; " + format_bytes(trial.known.too_small) + " is not";
  return text;
}

}  // namespace

sim::SimulationResult simulate_in_sight(const LoadedTrace& loaded,
                                        const sim::SimulationOptions& options) {
  ProgressLine progress(1);
  progress.show(0, loaded.name + " in " + budget_text(loaded, options.budget));
  return sim::simulate(loaded.trace, options);
}

std::optional<sim::SmallestBudget> find_smallest_budget(const LoadedTrace& loaded,
                                                        sim::SimulationOptions options) {
  const StopOnInterrupt interrupt;
  options.stop = &interrupt.stopped();
  ProgressLine progress(0);
  return sim::find_smallest_budget(loaded.trace, std::move(options), [&](const sim::Trial& trial) {
    progress.set_total(trial.before + trial.to_come);
    progress.show(trial.before, describe(loaded, trial));
  });
}

std::string budget_text(const LoadedTrace& loaded, Bytes budget) {
  return format_bytes(budget) + " (ratio " + format_decimal(loaded.ratio_of(budget), 3) + ")";
}

std::string interrupted_text(const LoadedTrace& loaded,
                             const std::optional<sim::SmallestBudget>& smallest) {
  if (!smallest || smallest->is_final) return {};
  std::string text = "Interrupted while the smallest budget was looked for: ";
  if (smallest->bytes == 0 && smallest->too_small == 0) return text + "nothing is known of it.";
  if (smallest->bytes > 0) text += budget_text(loaded, smallest->bytes) + " is enough";
  if (smallest->bytes > 0 && smallest->too_small > 0) text += ", ";
  if (smallest->too_small > 0) text += budget_text(loaded, smallest->too_small) + " is not";
  return text + ".";
}

std::string time_bound_text(const sim::SmallestBudget& smallest) {
  if (!smallest.is_time_bound) return {};
  return "Budgets with which a step recomputes for more than " +
         std::to_string(std::lround(sim::kMostRecomputing)) + " times its own time do not count.";
}

int exit_code_of(const std::optional<sim::SmallestBudget>& smallest) {
  return smallest && !smallest->is_final ? kInterrupted : 0;
}

}  // namespace coop::cli
