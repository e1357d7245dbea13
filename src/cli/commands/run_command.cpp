// coop-sim run: one trace, one policy, one budget.

#include <memory>
#include <optional>
#include <string>

#include "cli/commands/result_fields.hpp"
#include "cli/commands/shared_options.hpp"
#include "cli/commands/simulating.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/picture/memory_map.hpp"
#include "cli/picture/picture_file.hpp"
#include "cli/text/format.hpp"
#include "cli/text/json.hpp"
#include "cli/text/table.hpp"
#include "core/base/errors.hpp"
#include "sim/simulator/block_history.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/simulator/smallest_budget.hpp"

namespace coop::cli {
namespace {

struct RunOptions {
  std::string path;
  TraceOptions trace;
  WorldOptions world;
  std::string policy;
  BudgetOptions budget;
  std::string map;
  bool is_json = false;
};

// A run that has been made, and the smallest budget if it did not fit.
struct Run {
  LoadedTrace loaded;
  std::string policy;
  sim::SimulationResult result;
  std::optional<sim::SmallestBudget> smallest;
};

std::string as_json(const Run& run) {
  JsonWriter json;
  json.begin_object();
  write_result_fields(json, run.loaded, run.policy, run.result);
  if (!run.result.is_ok()) write_smallest_budget(json, run.smallest);
  json.end_object();
  return json.finish();
}

void add_figures(Table& table, const sim::StepResult& step, Bytes budget) {
  const double per_search =
      step.searches == 0 ? 0
                         : static_cast<double>(step.search_ns) / static_cast<double>(step.searches);
  table.add_row({"overhead", format_percent(step.overhead()) + ": " + format_time(step.base_ns) +
                                 " become " + format_time(step.total_ns())});
  if (step.more_to_halve > 0) {
    table.add_row({"half of that", "with about " + format_bytes(budget + step.more_to_halve)});
  }
  table.add_row({"fragmentation", format_percent(step.fragmentation) + " of the budget"});
  table.add_row({"evicted", format_count(step.evictions, "time") + ", " +
                                format_bytes(step.evicted_bytes) + " in all"});
  table.add_row({"recomputed", format_count(step.recomputed_calls, "call") + ", " +
                                   format_time(step.recomputed_ns)});
  if (step.moved_bytes > 0) {
    table.add_row(
        {"moved", format_bytes(step.moved_bytes) + ", about " + format_time(step.moving_ns)});
  }
  table.add_row({"search time", format_time(static_cast<double>(step.search_ns)) + " in " +
                                    format_count(step.searches, "search") + ", " +
                                    format_time(per_search) + " each"});
}

std::string smallest_budget_text(const Run& run) {
  if (!run.smallest) return "no budget that was tried fits";
  if (!run.smallest->is_final) return "not known";
  return budget_text(run.loaded, run.smallest->bytes) + " is the smallest that was found to work";
}

std::string as_text(const Run& run) {
  Table table;
  table.set_last_left();
  table.add_row({"trace", run.loaded.path});
  table.add_row({"policy", run.policy});
  table.add_row({"budget", format_bytes(run.result.budget) + " of the " +
                               format_bytes(run.loaded.demand.peak_bytes) +
                               " that it needs: ratio " +
                               format_decimal(run.loaded.ratio_of(run.result.budget), 3)});
  if (run.result.is_ok()) {
    add_figures(table, run.result.last(), run.result.budget);
    if (run.result.steps.size() > 1) {
      table.add_row({"step", "the last of " + std::to_string(run.result.steps.size())});
    }
    return table.text();
  }
  table.add_row({"out of memory", place_of(*run.result.failure)});
  table.add_row({"budget to have", smallest_budget_text(run)});
  const std::string text = table.text() + "\n" + wrapped(run.result.failure->why);
  std::string more = interrupted_text(run.loaded, run.smallest);
  if (more.empty() && run.smallest) more = time_bound_text(*run.smallest);
  return more.empty() ? text : text + "\n" + wrapped(more);
}

// Everything that can be wrong with the options, before anything is read or run.
void check(const RunOptions& options) {
  check(options.budget);
  if (options.map.empty()) return;
  check_picture_path(options.map);
  if (options.world.has_no_fragmentation) {
    throw InvalidArgument("a map shows addresses, which --no-fragmentation does away with");
  }
}

int run_trace(const RunOptions& options) {
  check(options);
  sim::SimulationOptions simulation = simulation_options(options.world, options.policy);
  Run run{.loaded = load_trace(options.path, options.trace), .policy = options.policy};
  simulation.budget = budget_of(options.budget, run.loaded);
  std::unique_ptr<sim::BlockHistory> history;
  if (!options.map.empty()) {
    history = std::make_unique<sim::BlockHistory>(run.loaded.trace);
    simulation.engine.observer = history.get();
  }
  run.result = simulate_in_sight(run.loaded, simulation);
  if (!run.result.is_ok()) run.smallest = find_smallest_budget(run.loaded, simulation);
  if (history) {
    const Picture map = draw_memory_map(*history, {.trace = run.loaded.trace,
                                                   .name = run.loaded.name,
                                                   .policy = run.policy,
                                                   .result = run.result,
                                                   .peak = run.loaded.demand.peak_bytes});
    write_picture(options.map, map, as_text(run));
  }
  print(options.is_json ? as_json(run) : as_text(run));
  return exit_code_of(run.smallest);
}

void declare_run(CLI::App& app, RunOptions& options) {
  add_trace_argument(app, options.path);
  add_trace_options(app, options.trace);
  add_policy_option(app, options.policy);
  add_budget_options(app, options.budget);
  add_world_options(app, options.world);
  app.add_option("--map", options.map, "draw addresses against time: .svg, .html or .png")
      ->type_name("FILE");
  app.add_flag("--json", options.is_json, "for programs");
}

}  // namespace

void add_run(CLI::App& app, Action& chosen) {
  add_subcommand<RunOptions>(
      app, chosen, "run", "One trace inside one budget: what it costs.",
      "coop-sim run tests/data/h200/spos.log.gz --inplace --policy coop --ratio .5", declare_run,
      run_trace);
}

}  // namespace coop::cli
