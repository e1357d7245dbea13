#pragma once

// Simulations that whoever waits at a terminal hears of, for commands that make few of them.

#include <atomic>
#include <optional>
#include <string>

#include "cli/commands/shared_options.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/simulator/smallest_budget.hpp"

namespace coop::cli {

sim::SimulationResult simulate_in_sight(const LoadedTrace& loaded,
                                        const sim::SimulationOptions& options);

// Ctrl-C leaves what is known by then, as sim::find_smallest_budget does.
std::optional<sim::SmallestBudget> find_smallest_budget(const LoadedTrace& loaded,
                                                        sim::SimulationOptions options);

// "2.1 GiB (ratio 0.222)"
std::string budget_text(const LoadedTrace& loaded, Bytes budget);

// Of a search that was interrupted; empty if it was not.
std::string interrupted_text(const LoadedTrace& loaded,
                             const std::optional<sim::SmallestBudget>& smallest);
// What else must be said of one that was not.
std::string time_bound_text(const sim::SmallestBudget& smallest);

// 0, or what the shell is told of an interruption.
int exit_code_of(const std::optional<sim::SmallestBudget>& smallest);

}  // namespace coop::cli
