#pragma once

// Options that several subcommands have, and what they are turned into.

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/cli11_forward.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/trace.hpp"

namespace coop::cli {

// --- which trace ---

struct TraceOptions {
  std::string format;  // empty: guessed from what is in the file
  bool is_in_place = false;
  std::string most_text;  // empty: sim::kMostTextBytes
};
void add_trace_options(CLI::App& app, TraceOptions& options);
// The one trace of commands that take one.
void add_trace_argument(CLI::App& app, std::string& path);

struct LoadedTrace {
  std::string path;  // as it was given
  std::string name;  // the file's, without folders and endings
  sim::Trace trace;
  sim::Demand demand;

  [[nodiscard]] double ratio_of(Bytes budget) const {
    const Bytes peak = demand.peak_bytes;
    return peak == 0 ? 1 : static_cast<double>(budget) / static_cast<double>(peak);
  }
};
// Throws sim::TraceError, and InvalidArgument for options that make no sense.
LoadedTrace load_trace(const std::string& path, const TraceOptions& options);

// --- in which world ---

struct WorldOptions {
  std::size_t steps = 0;  // 0: as many as the trace has
  bool has_no_fragmentation = false;
};
void add_world_options(CLI::App& app, WorldOptions& options);
// --policy, of commands that take one.
void add_policy_option(CLI::App& app, std::string& policy);

// Throws InvalidArgument for a policy that is not there or not for this world.
sim::SimulationOptions simulation_options(const WorldOptions& world, const std::string& policy);

// --- how much memory ---

// Of commands that take one budget: one of the two.
struct BudgetOptions {
  std::string ratio;
  std::string budget;
};
void add_budget_options(CLI::App& app, BudgetOptions& options);
// Throws InvalidArgument.
void check(const BudgetOptions& options);
Bytes budget_of(const BudgetOptions& options, const LoadedTrace& loaded);

// Budget over peak, more than 0. Throws InvalidArgument, naming `option`.
double parse_ratio(std::string_view text, std::string_view option);
// The same for a list; what comes again is left out.
std::vector<double> parse_ratios(const std::vector<std::string>& texts, std::string_view option);
// Throws InvalidArgument if it is no size for a pool.
Bytes budget_for(const LoadedTrace& loaded, double ratio);

}  // namespace coop::cli
