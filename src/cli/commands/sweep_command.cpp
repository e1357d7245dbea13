// coop-sim sweep: traces, policies and ratios against each other.

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/shared_options.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/picture/picture_file.hpp"
#include "cli/sweep/progress.hpp"
#include "cli/sweep/reference.hpp"
#include "cli/sweep/sweep.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "cli/text/format.hpp"
#include "core/base/errors.hpp"

namespace coop::cli {
namespace {

struct SweepOptions {
  std::vector<std::string> paths;
  TraceOptions trace;
  WorldOptions world;
  std::vector<std::string> policies;
  std::vector<std::string> ratios;
  std::vector<std::string> references;
  std::vector<std::string> plots;
  std::size_t jobs = std::max(1U, std::thread::hardware_concurrency());
  bool is_summary = false;
  bool is_json = false;
};

// Everything that can be wrong is found before the first simulation begins.
SweepPlan make_plan(const SweepOptions& options) {
  SweepPlan plan{.ratios = parse_ratios(options.ratios, "--ratios"), .world = options.world};
  for (const std::string& policy : options.policies) {
    simulation_options(options.world, policy);
    const auto& known = plan.policies;
    if (std::find(known.begin(), known.end(), policy) == known.end()) {
      plan.policies.push_back(policy);
    }
  }
  for (const std::string& plot : options.plots) check_picture_path(plot);
  for (const std::string& path : options.paths) {
    plan.traces.push_back(load_trace(path, options.trace));
    for (const double ratio : plan.ratios) budget_for(plan.traces.back(), ratio);
  }
  return plan;
}

std::string describe(const SweepPlan& plan, const Cell& cell) {
  return plan.traces[cell.trace].name + ", " + plan.policies[cell.policy] + " at " +
         format_ratio(plan.ratios[cell.ratio]);
}

int run_sweep(const SweepOptions& options) {
  std::vector<Reference> references;
  for (const std::string& path : options.references) {
    std::vector<Reference> more = read_references(path);
    std::move(more.begin(), more.end(), std::back_inserter(references));
  }
  const SweepPlan plan = make_plan(options);
  Sweep sweep(plan);
  {
    const StopOnInterrupt interrupt;
    ProgressLine progress(sweep.cell_count());
    sweep.run(options.jobs, interrupt.stopped(), [&](std::size_t done, const Cell& cell) {
      progress.show(done, describe(plan, cell));
    });
  }
  const std::string text =
      options.is_summary ? sweep_summary(sweep) : sweep_text(sweep, references);
  if (!options.plots.empty()) {
    const Picture picture = draw_sweep(sweep, references);
    for (const std::string& plot : options.plots) write_picture(plot, picture, text);
  }
  print(options.is_json ? sweep_json(sweep, references) : text);
  return sweep.is_complete() ? 0 : kInterrupted;
}

void declare_sweep(CLI::App& app, SweepOptions& options) {
  app.add_option("TRACE", options.paths, "traces of ours or DTR logs, plain or gzipped")
      ->option_text("...")
      ->required();
  add_trace_options(app, options.trace);
  app.add_option("--policies", options.policies, "separated by commas")
      ->delimiter(',')
      ->option_text("A,B")
      ->required();
  app.add_option("--ratios", options.ratios, "budget / peak memory, separated by commas")
      ->delimiter(',')
      ->option_text(".8,.6")
      ->allow_extra_args(false)
      ->required();
  add_world_options(app, options.world);
  app.add_option("--jobs", options.jobs,
                 "at a time (" + std::to_string(options.jobs) +
                     "); 1 for search times that nothing disturbs")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  app.add_option("--reference", options.references,
                 "others' figures as CSV: reference,trace,ratio,time")
      ->allow_extra_args(false)
      ->option_text("FILE");
  app.add_option("--plot", options.plots, "draw it: .svg, .html or .png; may be given again")
      ->allow_extra_args(false)
      ->option_text("FILE");
  app.add_flag("--summary", options.is_summary, "one table: means over traces that fit everywhere")
      ->option_text(" ");
  app.add_flag("--json", options.is_json, "for programs; without --summary")
      ->option_text(" ")
      ->excludes("--summary");
}

}  // namespace

void add_sweep(CLI::App& app, Action& chosen) {
  add_subcommand<SweepOptions>(
      app, chosen, "sweep", "Tables of what budgets cost. Ctrl-C leaves what is done.",
      "coop-sim sweep tests/data/h200/*.log.gz --inplace --policies coop,dtr\n"
      "      --ratios .8,.6 --reference tests/data/h200/lower_bound.csv --plot it.svg",
      declare_sweep, run_sweep);
}

}  // namespace coop::cli
