#pragma once

// What `run`, `sweep` and `explain` say about one simulation, for programs.

#include <optional>
#include <string>

#include "cli/commands/shared_options.hpp"
#include "cli/text/json.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/simulator/smallest_budget.hpp"

namespace coop::cli {

// Every field is always there; figures of a step that did not end are null.
void write_result_fields(JsonWriter& json, const LoadedTrace& loaded, const std::string& policy,
                         const sim::SimulationResult& result);

// smallest_budget_bytes, null if none was found, and whether it was looked for to the end.
void write_smallest_budget(JsonWriter& json, const std::optional<sim::SmallestBudget>& smallest);

// "in aten.mm, step 2", of a simulation that ran out of memory.
std::string place_of(const sim::FailedAt& failure);

}  // namespace coop::cli
