// coop-sim report: all that is known of one run, as JSON, for `coop report` to draw.

#include <string>

#include "cli/commands/shared_options.hpp"
#include "cli/commands/simulating.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/report/report.hpp"
#include "cli/report/step_story.hpp"
#include "cli/text/format.hpp"
#include "core/base/errors.hpp"
#include "sim/simulator/simulator.hpp"

namespace coop::cli {
namespace {

struct ReportOptions {
  std::string path;
  TraceOptions trace;
  WorldOptions world;
  std::string policy;
  BudgetOptions budget;
};

constexpr const char* kUsualPolicy = "coop";
// To look for the smallest budget takes a dozen runs, and the smaller ones take longest: with more calls than this it
// would be minutes.
constexpr std::size_t kMostCallsForFloor = 30'000;

int report(ReportOptions options) {
  const bool has_budget = !options.budget.ratio.empty() || !options.budget.budget.empty();
  if (has_budget) check(options.budget);
  if (options.world.has_no_fragmentation) {
    throw InvalidArgument("a report shows addresses, which --no-fragmentation does away with");
  }
  const LoadedTrace loaded = load_trace(options.path, options.trace);
  const auto& recorded = loaded.trace.recorded_with();
  if (!has_budget && !recorded) {
    throw InvalidArgument(options.path +
                          " does not say what budget it was recorded in: give --ratio or --budget");
  }
  if (options.policy.empty()) {
    options.policy = recorded ? loaded.trace.name(recorded->policy) : kUsualPolicy;
  }
  sim::SimulationOptions simulation = simulation_options(options.world, options.policy);
  simulation.budget = has_budget ? budget_of(options.budget, loaded) : recorded->budget;
  StepStory story(loaded.trace);
  simulation.engine.observer = &story;
  const sim::SimulationResult result = simulate_in_sight(loaded, simulation);
  story.finish();
  ReportedRun run{.loaded = loaded,
                  .policy = options.policy,
                  .result = result,
                  .story = story,
                  .is_floor_known = loaded.trace.call_count() <= kMostCallsForFloor};
  if (run.is_floor_known) run.smallest = find_smallest_budget(loaded, simulation);
  if (exit_code_of(run.smallest) != 0) return exit_code_of(run.smallest);
  print(report_json(run));
  return 0;
}

void declare_report(CLI::App& app, ReportOptions& options) {
  add_trace_argument(app, options.path);
  add_trace_options(app, options.trace);
  app.add_option("--policy", options.policy, "what decides; without: the trace's own")
      ->option_text("NAME");
  add_budget_options(app, options.budget);
  add_world_options(app, options.world);
}

}  // namespace

void add_report(CLI::App& app, Action& chosen) {
  add_subcommand<ReportOptions>(
      app, chosen, "report", "One run as JSON: what `coop report` draws.",
      "coop-sim report tests/data/h200/resnet50.log.gz --inplace --ratio .5", declare_report,
      report);
}

}  // namespace coop::cli
