// coop-sim check: whether the simulator decides as the engine did that was recorded.

#include <string>
#include <vector>

#include "cli/commands/shared_options.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/text/format.hpp"
#include "cli/text/json.hpp"
#include "core/base/bytes.hpp"
#include "core/base/errors.hpp"
#include "sim/simulator/decisions.hpp"

namespace coop::cli {
namespace {

constexpr int kDiffers = 1;

struct CheckOptions {
  std::string path;
  TraceOptions trace;
  bool is_json = false;
};

std::string decision_at(const sim::Trace& trace, const std::vector<sim::TraceEvent>& decisions,
                        std::size_t number) {
  return number < decisions.size() ? sim::describe(trace, decisions[number]) : "nothing more";
}

std::string as_json(const LoadedTrace& loaded, const sim::ComparedDecisions& compared) {
  const sim::Trace& trace = loaded.trace;
  JsonWriter json;
  json.begin_object();
  json.field("trace", loaded.path);
  json.field("policy", trace.name(trace.recorded_with()->policy));
  json.field("budget_bytes", trace.recorded_with()->budget);
  json.field("evictions", compared.count(sim::EventKind::kEvicted));
  json.field("recomputed_calls", compared.count(sim::EventKind::kAgain));
  json.field("is_late", trace.recorded_with()->is_late);
  json.field("status", compared.differs_at ? "differs" : "same");
  if (compared.differs_at) {
    const std::size_t at = *compared.differs_at;
    json.field("differs_at", at);
    json.field("recorded", decision_at(trace, compared.recorded, at));
    json.field("simulated", decision_at(trace, compared.simulated, at));
  }
  json.end_object();
  return json.finish();
}

std::string as_text(const LoadedTrace& loaded, const sim::ComparedDecisions& compared) {
  const sim::Trace& trace = loaded.trace;
  std::string text = loaded.path + ", recorded with " + trace.name(trace.recorded_with()->policy) +
                     " in " + format_bytes(trace.recorded_with()->budget) + ": " +
                     format_count(compared.count(sim::EventKind::kEvicted), "eviction") + ", " +
                     format_count(compared.count(sim::EventKind::kAgain), "recomputation") + ". ";
  if (!compared.differs_at)
    return wrapped(text + "The simulator makes the same in the same order.");
  const std::size_t at = *compared.differs_at;
  text += "The simulator differs from decision " + std::to_string(at) +
          " on. Recorded: " + decision_at(trace, compared.recorded, at) +
          "; simulated: " + decision_at(trace, compared.simulated, at) + ".";
  if (trace.recorded_with()->is_late) {
    text += " The recording began in a budget that had been in use, so it may.";
  }
  if (!compared.out_of_memory.empty()) {
    text += " The simulation was out of memory: " + compared.out_of_memory;
  }
  return wrapped(text);
}

int check_trace(const CheckOptions& options) {
  const LoadedTrace loaded = load_trace(options.path, options.trace);
  sim::ComparedDecisions compared;
  try {
    compared = sim::compare_decisions(loaded.trace);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(options.path + ": " + error.what());
  }
  print(options.is_json ? as_json(loaded, compared) : as_text(loaded, compared));
  return compared.differs_at ? kDiffers : 0;
}

}  // namespace

void add_check(CLI::App& app, Action& chosen) {
  add_subcommand<CheckOptions>(
      app, chosen, "check", "Whether the simulator does what the recorded program did.",
      "coop-sim check step.coop",
      [](CLI::App& check, CheckOptions& options) {
        add_trace_argument(check, options.path);
        add_trace_options(check, options.trace);
        check.add_flag("--json", options.is_json, "for programs");
      },
      check_trace);
}

}  // namespace coop::cli
