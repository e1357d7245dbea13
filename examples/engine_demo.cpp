// A synthetic network trains inside smaller and smaller budgets: what does each policy pay for it, and
// where does it no longer fit?

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/bytes.hpp"
#include "core/base/errors.hpp"
#include "core/policy/policy.hpp"
#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"

namespace {

using namespace coop;
using namespace coop::sim;

struct Options {
  std::string network = "transformer";
  GeneratorOptions generator{.seed = 1};
  std::vector<std::string> policies{"coop", "coop-paper", "dtr", "dte", "lru"};
  std::vector<double> budgets;  // percent of what it needs; none: down to where nothing fits
  bool json = false;
};

struct Network {
  Trace trace;
  Demand demand;

  [[nodiscard]] Bytes budget(double percent) const {
    return static_cast<Bytes>(static_cast<double>(demand.peak_bytes) * percent / 100);
  }
  [[nodiscard]] SimulationResult run(const std::string& policy, double percent) const {
    return simulate(trace, {.policy = policy, .budget = budget(percent)});
  }
};

struct Row {
  std::string policy;
  std::vector<SimulationResult> results;  // one for each budget
  double fits_from = 0;                   // percent
};

// By halving the interval, to a tenth of a percent. There may be smaller budgets that fit by luck.
double smallest_budget(const Network& network, const std::string& policy) {
  double too_little = 0;
  double enough = 200;
  while (enough - too_little > 0.1) {
    const double middle = (enough + too_little) / 2;
    (network.run(policy, middle).is_ok() ? enough : too_little) = middle;
  }
  return enough;
}

bool fits_anywhere(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::any_of(row.results.begin(), row.results.end(),
                       [](const SimulationResult& result) { return result.is_ok(); });
  });
}

// One more budget for every policy; whether any of them fits into it.
bool run_budget(const Network& network, double budget, std::vector<Row>& rows) {
  bool fits = false;
  for (Row& row : rows) {
    row.results.push_back(network.run(row.policy, budget));
    fits = fits || row.results.back().is_ok();
  }
  return fits;
}

std::vector<Row> run_all(const Network& network, Options& options) {
  std::vector<Row> rows;
  for (const std::string& policy : options.policies) {
    rows.push_back({.policy = policy, .fits_from = smallest_budget(network, policy)});
  }
  if (options.budgets.empty()) {
    for (int budget = 100; budget > 0; budget -= 10) {
      options.budgets.push_back(budget);
      if (!run_budget(network, budget, rows)) break;
    }
  } else {
    for (const double budget : options.budgets) run_budget(network, budget, rows);
  }
  return rows;
}

// --- a table for people ---

template <typename Cell>
void print_table(const char* title, const Options& options, const std::vector<Row>& rows,
                 const Cell& cell, bool has_limit = false) {
  std::printf("%s\n%-12s", title, "budget");
  for (const double budget : options.budgets) std::printf(" %6.0f%%", budget);
  std::printf("%s\n", has_limit ? "   fits from" : "");
  for (const Row& row : rows) {
    std::printf("%-12s", row.policy.c_str());
    for (const SimulationResult& result : row.results) {
      std::printf(" %7s", result.is_ok() ? cell(result.last()).c_str() : "-");
    }
    if (has_limit) std::printf(" %10.1f%%", row.fits_from);
    std::printf("\n");
  }
  std::printf("\n");
}

std::string with_unit(double number, const char* unit) {
  char text[32];  // NOLINT(modernize-avoid-c-arrays): what snprintf wants
  std::snprintf(text, sizeof text, "%.1f%s", number, unit);
  return text;
}

// Breaks the text into lines for a terminal.
void print_wrapped(const std::string& text) {
  constexpr std::size_t kColumns = 96;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    const bool is_first = column == 0;
    const bool is_full = column + length >= kColumns;
    std::printf("%s%s", is_first ? "" : (is_full ? "\n" : " "), text.substr(begin, length).c_str());
    column = is_full ? length : column + length + 1;
    begin = end + 1;
  }
  std::printf("\n");
}

// Why there are dashes: the first budget that was too small for the first policy.
void explain_dashes(const Options& options, const std::vector<Row>& rows) {
  const Row& row = rows.front();
  for (std::size_t i = 0; i < row.results.size(); ++i) {
    if (row.results[i].is_ok()) continue;
    const FailedAt& failure = *row.results[i].failure;
    const std::string op = failure.op.empty() ? "after the last operator" : "in " + failure.op;
    std::printf("-: does not fit. %s with %.0f%%, %s in step %zu:\n", row.policy.c_str(),
                options.budgets[i], op.c_str(), failure.step + 1);
    print_wrapped(failure.why);
    return;
  }
}

void print_tables(const Network& network, const Options& options, const std::vector<Row>& rows) {
  const auto steps = static_cast<double>(network.trace.step_count());
  std::printf("The network '%s' needs %s. %zu steps of %.0f calls and %.1f ms each; seed %llu.\n\n",
              options.network.c_str(), format_bytes(network.demand.peak_bytes).c_str(),
              network.trace.step_count(), static_cast<double>(network.trace.call_count()) / steps,
              network.demand.base_ns / steps / 1e6,
              static_cast<unsigned long long>(options.generator.seed));
  print_table(
      "Overhead: time spent recomputing, over all other time", options, rows,
      [](const StepResult& step) { return with_unit(100 * step.overhead(), "%"); }, true);
  print_table("Fragmentation: free, when an allocation that had to evict was served", options, rows,
              [](const StepResult& step) { return with_unit(100 * step.fragmentation, "%"); });
  print_table("Search time: microseconds a step spent choosing what to evict", options, rows,
              [](const StepResult& step) {
                return with_unit(static_cast<double>(step.search_ns) / 1e3, "");
              });
  explain_dashes(options, rows);
}

// --- JSON for programs ---

void print_result(const Options& options, const std::string& policy, const Network& network,
                  const SimulationResult& result) {
  std::printf(
      "  {\"trace\": \"%s\", \"policy\": \"%s\", \"steps\": %zu, \"budget_bytes\": %llu, "
      "\"peak_bytes\": %llu, ",
      options.network.c_str(), policy.c_str(), result.steps.size(),
      static_cast<unsigned long long>(result.budget),
      static_cast<unsigned long long>(network.demand.peak_bytes));
  if (!result.is_ok()) {
    std::printf(R"("status": "out_of_memory"})");
    return;
  }
  const StepResult& step = result.last();
  std::printf(
      "\"base_ns\": %.0f, \"total_ns\": %.0f, \"overhead\": %.6f, \"fragmentation\": %.6f, "
      "\"evictions\": %llu, \"recomputed_calls\": %llu, \"searches\": %llu, \"search_ns\": %llu, "
      "\"status\": \"ok\"}",
      step.base_ns, step.total_ns(), step.overhead(), step.fragmentation,
      static_cast<unsigned long long>(step.evictions),
      static_cast<unsigned long long>(step.recomputed_calls),
      static_cast<unsigned long long>(step.searches),
      static_cast<unsigned long long>(step.search_ns));
}

void print_json(const Network& network, const Options& options, const std::vector<Row>& rows) {
  const char* separator = "[\n";
  for (const Row& row : rows) {
    for (const SimulationResult& result : row.results) {
      std::printf("%s", separator);
      print_result(options, row.policy, network, result);
      separator = ",\n";
    }
  }
  std::printf("\n]\n");
}

// --- the command ---

std::vector<std::string> names_of(const auto& known) {
  std::vector<std::string> names;
  for (const auto& each : known) names.emplace_back(each.name);
  return names;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "A synthetic network trains inside smaller and smaller budgets: overhead, fragmentation and "
      "search time of each policy, and where it no longer fits.");
  app.add_option("--network", options.network, "what trains")
      ->check(CLI::IsMember(names_of(known_generators())))
      ->capture_default_str();
  app.add_option("--seed", options.generator.seed, "of the network's shapes and costs")
      ->capture_default_str();
  app.add_option("--layers", options.generator.layers, "how deep it is; 0: drawn from the seed")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--steps", options.generator.steps, "training steps; the last one counts")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--policies", options.policies, "separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(names_of(known_policies())))
      ->capture_default_str();
  app.add_option("--budgets", options.budgets, "in percent of what the network needs")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 200.0))
      ->default_str("100,90,... to where nothing fits");
  app.add_flag("--json", options.json, "print JSON instead of tables");
  app.footer("Example: coop-engine-demo --network transformer --budgets 80,60,40 --json");
  CLI11_PARSE(app, argc, argv);

  Network network{.trace = generate(options.network, options.generator)};
  network.demand = measure_demand(network.trace);
  const std::vector<Row> rows = run_all(network, options);
  if (!fits_anywhere(rows)) {
    const Row& best = *std::min_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.fits_from < b.fits_from;
    });
    std::fprintf(stderr,
                 "error: '%s' needs %s and does not fit: the smallest budget that serves is %.1f%% "
                 "(%s), with %s.\nGive it more with --budgets.\n",
                 options.network.c_str(), format_bytes(network.demand.peak_bytes).c_str(),
                 best.fits_from, format_bytes(network.budget(best.fits_from)).c_str(),
                 best.policy.c_str());
    return 1;
  }
  (options.json ? print_json : print_tables)(network, options, rows);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
