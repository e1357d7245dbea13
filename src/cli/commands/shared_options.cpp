#include "cli/commands/shared_options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>

#include "core/base/errors.hpp"
#include "sim/trace/dtr_log.hpp"
#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::cli {
namespace {

// More times the peak than anyone wants; most likely percent.
constexpr double kMostRatio = 10;
constexpr std::size_t kMostSteps = 100'000;

// DTR logs are JSON, a line for each instruction. Whatever else it is, the reader of our own format
// says what is wrong with it.
bool is_dtr_log(std::string_view text, const TraceOptions& options) {
  if (!options.format.empty()) return options.format == "dtr";
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with('{') && line.find("\"INSTRUCTION\"") != std::string_view::npos;
}

std::string read_text(const std::string& path, const TraceOptions& options) {
  const Bytes most =
      options.most_text.empty() ? sim::kMostTextBytes : parse_bytes(options.most_text);
  try {
    return sim::read_text_file(path, most);
  } catch (const sim::TooMuchText& error) {
    throw sim::TraceError(std::string(error.what()) +
                          ": is this a trace? If it is, --max-text sets the limit");
  }
}

std::string name_of(const std::filesystem::path& path) {
  std::filesystem::path name = path.filename();
  for (const char* ending : {".gz", ".log", ".trace", ".coop"}) {
    if (name.extension() == ending) name = name.stem();
  }
  return name.string();
}

}  // namespace

void add_trace_argument(CLI::App& app, std::string& path) {
  app.add_option("TRACE", path, "a trace of ours or a DTR log, plain or gzipped")
      ->option_text(" ")
      ->required();
}

void add_trace_options(CLI::App& app, TraceOptions& options) {
  app.add_option("--format", options.format, "of the trace; guessed if not given")
      ->check(CLI::IsMember({"coop", "dtr"}))
      ->option_text("{coop,dtr}");
  app.add_flag("--inplace", options.is_in_place,
               "DTR logs: MUTATE changes tensors in place; without: copies");
  app.add_option(
         "--max-text", options.most_text,
         "the most that is read of a file, unpacked; without: " + format_bytes(sim::kMostTextBytes))
      ->type_name("BYTES");
}

LoadedTrace load_trace(const std::string& path, const TraceOptions& options) {
  std::string text = read_text(path, options);
  const auto mutation = options.is_in_place ? sim::Mutation::kInPlace : sim::Mutation::kCopies;
  LoadedTrace loaded{.path = path, .name = name_of(path)};
  loaded.trace = is_dtr_log(text, options) ? sim::parse_dtr_log(std::move(text), path, mutation)
                                           : sim::parse_trace(text, path);
  loaded.demand = sim::measure_demand(loaded.trace);
  return loaded;
}

void add_world_options(CLI::App& app, WorldOptions& options) {
  app.add_option("--steps", options.steps, "of which the last counts; without: those of the trace")
      ->check(CLI::Range(std::size_t{1}, kMostSteps))
      ->option_text("N");
  app.add_flag("--no-fragmentation", options.has_no_fragmentation,
               "bytes are wherever they are: a world without addresses");
}

void add_policy_option(CLI::App& app, std::string& policy) {
  app.add_option("--policy", policy, "what decides; coop-sim policies lists them")
      ->option_text("NAME")
      ->required();
}

sim::SimulationOptions simulation_options(const WorldOptions& world, const std::string& policy) {
  if (make_policy(policy)->needs_addresses() && world.has_no_fragmentation) {
    throw InvalidArgument("the policy '" + policy +
                          "' evicts neighbours and means nothing with --no-fragmentation");
  }
  return {.policy = policy, .steps = world.steps, .ignores_addresses = world.has_no_fragmentation};
}

void add_budget_options(CLI::App& app, BudgetOptions& options) {
  app.add_option("--ratio", options.ratio, "budget / peak memory, such as .5")->option_text("R");
  app.add_option("--budget", options.budget, "or the budget itself, such as 8GiB")
      ->option_text("SIZE");
}

void check(const BudgetOptions& options) {
  if (options.ratio.empty() == options.budget.empty()) {
    throw InvalidArgument("how much memory? Give either --ratio or --budget");
  }
  if (!options.ratio.empty()) parse_ratio(options.ratio, "--ratio");
  if (!options.budget.empty()) parse_bytes(options.budget);
}

Bytes budget_of(const BudgetOptions& options, const LoadedTrace& loaded) {
  return options.budget.empty() ? budget_for(loaded, parse_ratio(options.ratio, "--ratio"))
                                : parse_bytes(options.budget);
}

double parse_ratio(std::string_view text, std::string_view option) {
  double ratio = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ratio);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !(ratio > 0) || ratio > kMostRatio) {
    throw InvalidArgument(
        std::string(option) + " " + std::string(text) +
        ": a ratio is budget / peak memory, more than 0 and at most 10, such as .5");
  }
  return ratio;
}

std::vector<double> parse_ratios(const std::vector<std::string>& texts, std::string_view option) {
  std::vector<double> ratios;
  for (const std::string& text : texts) {
    const double ratio = parse_ratio(text, option);
    if (std::find(ratios.begin(), ratios.end(), ratio) == ratios.end()) ratios.push_back(ratio);
  }
  return ratios;
}

Bytes budget_for(const LoadedTrace& loaded, double ratio) {
  const double bytes = static_cast<double>(loaded.demand.peak_bytes) * ratio;
  if (bytes < static_cast<double>(kGrainBytes) || bytes > static_cast<double>(kMaxPoolBytes)) {
    throw InvalidArgument(loaded.path + ": needs " + format_bytes(loaded.demand.peak_bytes) +
                          ", and that times the ratio is no size for a pool: it takes " +
                          format_bytes(kGrainBytes) + " to " + format_bytes(kMaxPoolBytes));
  }
  return static_cast<Bytes>(bytes);
}

}  // namespace coop::cli
