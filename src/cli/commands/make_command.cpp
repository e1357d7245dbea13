// coop-sim make: a synthetic network, written as a trace.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cli/commands/subcommand.hpp"
#include "cli/text/format.hpp"
#include "core/base/bytes.hpp"
#include "core/base/errors.hpp"
#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::cli {
namespace {

struct MakeOptions {
  std::string kind;
  sim::GeneratorOptions generator;
  std::string seed = "0";
  std::string path;
};

// CLI11 takes -1 for the largest number there is.
std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc() || rest != end) {
    throw InvalidArgument("--seed " + text + ": a seed is a number from 0 to " +
                          std::to_string(std::numeric_limits<std::uint64_t>::max()));
  }
  return seed;
}

int make_trace(MakeOptions options) {
  options.generator.seed = parse_seed(options.seed);
  const sim::Trace trace = sim::generate(options.kind, options.generator);
  if (options.path.empty()) {
    print(sim::format_trace(trace));
    return 0;
  }
  sim::write_trace(trace, options.path);
  const sim::Demand demand = sim::measure_demand(trace);
  print(options.path + ": " + format_count(trace.step_count(), "step") + ", " +
        format_count(trace.call_count(), "call") + ", " + format_time(demand.base_ns) + ", peak " +
        format_bytes(demand.peak_bytes) + "\n");
  return 0;
}

std::string kinds() {
  std::string text;
  for (const sim::Generator& each : sim::known_generators()) {
    text += "  " + std::string(each.name) +
            std::string(18 - std::min<std::size_t>(each.name.size(), 17), ' ') +
            std::string(each.summary) + "\n";
  }
  text.pop_back();
  return text;
}

void declare_make(CLI::App& app, MakeOptions& options) {
  app.add_option("KIND", options.kind, "what trains: one of those below")
      ->option_text(" ")
      ->required();
  app.add_option("--seed", options.seed, "of its shapes and costs")
      ->capture_default_str()
      ->type_name("UINT");
  app.add_option("--steps", options.generator.steps, "training steps")->capture_default_str();
  app.add_option("--layers", options.generator.layers,
                 "how deep or long it is; without: drawn from the seed");
  app.add_option("-o,--output", options.path, "gzipped if it ends in .gz; without: standard output")
      ->type_name("FILE");
}

}  // namespace

void add_make(CLI::App& app, Action& chosen) {
  static const std::string kExample =
      "coop-sim make transformer --seed 7 --steps 3 -o transformer.trace.gz\n\n" + kinds();
  add_subcommand<MakeOptions>(app, chosen, "make", "A synthetic network that trains, as a trace.",
                              kExample.c_str(), declare_make, make_trace);
}

}  // namespace coop::cli
