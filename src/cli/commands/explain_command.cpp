// coop-sim explain: what a run paid for, and what keeps the budget from being smaller.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/eviction_tally.hpp"
#include "cli/commands/result_fields.hpp"
#include "cli/commands/shared_options.hpp"
#include "cli/commands/simulating.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/storage_names.hpp"
#include "cli/text/format.hpp"
#include "cli/text/json.hpp"
#include "cli/text/table.hpp"
#include "core/base/bytes.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/simulator/smallest_budget.hpp"

namespace coop::cli {
namespace {

constexpr std::size_t kMostListed = 10;

struct ExplainOptions {
  std::string path;
  TraceOptions trace;
  WorldOptions world;
  std::string policy;
  BudgetOptions budget;
  bool is_json = false;
};

struct Explanation {
  const LoadedTrace& loaded;
  const std::string& policy;
  const sim::SimulationResult& result;
  const EvictionTally& tally;
  const StorageNames& names;
  std::optional<sim::SmallestBudget> smallest;

  // Of the run itself if it did not fit, otherwise of one with a little less than the smallest budget.
  [[nodiscard]] const sim::FailedAt* tightest() const {
    if (!result.is_ok()) return &*result.failure;
    return smallest && smallest->tightest ? &*smallest->tightest : nullptr;
  }
};

// --- for programs ---

void write_tally(JsonWriter& json, const EvictionTally& tally) {
  json.objects("evicted", tally.evicted(), [&](const EvictionTally::Line& each) {
    json.field("op", tally.name(each.op));
    json.field("times", each.times);
    json.field("bytes", each.bytes);
  });
  json.objects("recomputed", tally.recomputed(), [&](const EvictionTally::Line& each) {
    json.field("op", tally.name(each.op));
    json.field("times", each.times);
    json.field("ns", each.ns);
  });
}

void write_tightest(JsonWriter& json, const Explanation& about, const sim::FailedAt& failure) {
  const MemoryReport& memory = failure.memory;
  json.key("tightest");
  json.begin_object();
  json.field("budget_bytes", memory.pool);
  json.field("op", failure.op);
  json.field("event", failure.event);
  json.field("step", failure.step);
  json.field("requested_bytes", memory.requested);
  json.field("free_bytes", memory.free);
  json.field("why", failure.why);
  json.key("held");
  json.begin_array();
  for (std::size_t i = 0; i < kHolders; ++i) {
    json.begin_object();
    json.field("what", describe(static_cast<Holder>(i)));
    json.field("bytes", memory.held[i].bytes);
    json.field("blocks", memory.held[i].blocks);
    json.end_object();
  }
  json.end_array();
  json.objects("largest", memory.largest, [&](const LargeBlock& block) {
    json.field("name", about.names.name_of_token(block.storage));
    json.field("what", describe(block.holder));
    json.field("bytes", block.bytes);
  });
  json.end_object();
}

std::string as_json(const Explanation& about) {
  JsonWriter json;
  json.begin_object();
  write_result_fields(json, about.loaded, about.policy, about.result);
  write_tally(json, about.tally);
  write_smallest_budget(json, about.smallest);
  if (about.tightest() != nullptr) write_tightest(json, about, *about.tightest());
  json.end_object();
  return json.finish();
}

// --- for people ---

std::string share_of(double part, double whole) {
  return format_percent(whole > 0 ? part / whole : 0);
}

std::string evicted_text(const EvictionTally& tally) {
  Bytes all = 0;
  for (const auto& each : tally.evicted()) all += each.bytes;
  Table table;
  table.add_row({"evicted, by the operator that made it", "times", "bytes", "share"});
  for (const auto& each : first_of(tally.evicted(), kMostListed)) {
    table.add_row({tally.name(each.op), std::to_string(each.times), format_bytes(each.bytes),
                   share_of(static_cast<double>(each.bytes), static_cast<double>(all))});
  }
  return table.text();
}

std::string recomputed_text(const EvictionTally& tally) {
  double all = 0;
  for (const auto& each : tally.recomputed()) all += each.ns;
  Table table;
  table.add_row({"recomputed, by operator", "times", "time", "share"});
  for (const auto& each : first_of(tally.recomputed(), kMostListed)) {
    table.add_row({tally.name(each.op), std::to_string(each.times), format_time(each.ns),
                   share_of(each.ns, all)});
  }
  return table.text();
}

std::string tightest_text(const Explanation& about, const sim::FailedAt& failure) {
  const MemoryReport& memory = failure.memory;
  std::string text = "The tightest moment: with " + format_bytes(memory.pool) + " (ratio " +
                     format_decimal(about.loaded.ratio_of(memory.pool), 3) + ") it ends " +
                     place_of(failure) + ".";
  if (failure.is_too_slow) {
    text += " By then what is computed again has taken " +
            std::to_string(std::lround(sim::kMostRecomputing)) +
            " times as long as all of the step itself does.";
  } else if (memory.largest_room < memory.requested) {
    text += " " + format_bytes(memory.requested) + " were asked for, and at most " +
            format_bytes(memory.largest_room) + " could be made free in one piece.";
  } else {
    text +=
        " There was room for the " + format_bytes(memory.requested) +
        " that were asked for, but not for all that had to be computed again for it together: the"
        " same operators would have run again and again.";
  }
  text = wrapped(text);
  Table held;
  held.add_row({"held then", "blocks", "bytes", "share"});
  for (std::size_t i = 0; i < kHolders; ++i) {
    const Holding& holding = memory.held[i];
    if (holding.blocks == 0) continue;
    held.add_row({std::string(describe(static_cast<Holder>(i))), std::to_string(holding.blocks),
                  format_bytes(holding.bytes),
                  share_of(static_cast<double>(holding.bytes), static_cast<double>(memory.pool))});
  }
  held.add_row({"free", "", format_bytes(memory.free),
                share_of(static_cast<double>(memory.free), static_cast<double>(memory.pool))});
  Table largest;
  largest.set_last_left();
  largest.add_row({"the largest that could not go", "bytes", "held"});
  for (const LargeBlock& block : memory.largest) {
    const std::string name = about.names.name_of_token(block.storage);
    largest.add_row({name.empty() ? "an output, a workspace or a past version" : name,
                     format_bytes(block.bytes), std::string(describe(block.holder))});
  }
  return text + "\n" + held.text() + "\n" + largest.text();
}

std::string summary_text(const Explanation& about) {
  const sim::SimulationResult& result = about.result;
  const std::string run = about.loaded.name + " with " + about.policy + " in " +
                          budget_text(about.loaded, result.budget) + ": ";
  std::string text = run;
  if (result.is_ok()) {
    text += "overhead " + format_percent(result.last().overhead());
    if (result.steps.size() > 1) {
      text += " in the last of " + std::to_string(result.steps.size()) +
              " steps; the figures below are of all of them";
    }
    text += ".";
  } else {
    text += "out of memory " + place_of(*result.failure) +
            "; the figures below are of what was run until then.";
  }
  return wrapped(text);
}

std::string smallest_text(const Explanation& about) {
  if (!about.smallest) return "No budget that was tried works.";
  std::string interrupted = interrupted_text(about.loaded, about.smallest);
  if (!interrupted.empty()) return interrupted;
  return "The smallest budget that was found to work: " +
         budget_text(about.loaded, about.smallest->bytes) + ". " + time_bound_text(*about.smallest);
}

std::string as_text(const Explanation& about) {
  std::string text = summary_text(about) + "\n" + evicted_text(about.tally) + "\n" +
                     recomputed_text(about.tally) + "\n";
  text += wrapped(smallest_text(about));
  if (about.tightest() != nullptr) text += tightest_text(about, *about.tightest());
  return text;
}

int explain(const ExplainOptions& options) {
  check(options.budget);
  sim::SimulationOptions simulation = simulation_options(options.world, options.policy);
  const LoadedTrace loaded = load_trace(options.path, options.trace);
  simulation.budget = budget_of(options.budget, loaded);
  const StorageNames names(loaded.trace);
  EvictionTally tally(loaded.trace, names);
  simulation.engine.observer = &tally;
  const sim::SimulationResult result = simulate_in_sight(loaded, simulation);
  const Explanation about{.loaded = loaded,
                          .policy = options.policy,
                          .result = result,
                          .tally = tally,
                          .names = names,
                          .smallest = find_smallest_budget(loaded, simulation)};
  print(options.is_json ? as_json(about) : as_text(about));
  return exit_code_of(about.smallest);
}

void declare_explain(CLI::App& app, ExplainOptions& options) {
  add_trace_argument(app, options.path);
  add_trace_options(app, options.trace);
  add_policy_option(app, options.policy);
  add_budget_options(app, options.budget);
  add_world_options(app, options.world);
  app.add_flag("--json", options.is_json, "for programs");
}

}  // namespace

void add_explain(CLI::App& app, Action& chosen) {
  add_subcommand<ExplainOptions>(
      app, chosen, "explain", "What was recomputed most, and what sets the floor.",
      "coop-sim explain tests/data/h200/resnet50.log.gz --policy coop --ratio .5", declare_explain,
      explain);
}

}  // namespace coop::cli
