#include "cli/commands/result_fields.hpp"

#include <optional>

namespace coop::cli {

void write_result_fields(JsonWriter& json, const LoadedTrace& loaded, const std::string& policy,
                         const sim::SimulationResult& result) {
  const sim::StepResult* last = result.is_ok() ? &result.last() : nullptr;
  const auto figure = [&](std::string_view name, const auto& of_step) {
    json.field(name, last != nullptr ? std::optional(of_step(*last)) : std::nullopt);
  };
  using Step = sim::StepResult;
  json.field("trace", loaded.path);
  json.field("policy", policy);
  json.field("status", result.is_ok() ? "ok" : "out_of_memory");
  json.field("steps", result.steps.size());
  json.field("budget_bytes", result.budget);
  json.field("peak_bytes", loaded.demand.peak_bytes);
  json.field("most_held_bytes", result.most_held_bytes);
  figure("base_ns", [](const Step& step) { return step.base_ns; });
  figure("total_ns", [](const Step& step) { return step.total_ns(); });
  figure("overhead", [](const Step& step) { return step.overhead(); });
  figure("budget_to_halve_bytes", [&](const Step& step) {
    return step.more_to_halve > 0 ? result.budget + step.more_to_halve : 0;
  });
  figure("fragmentation", [](const Step& step) { return step.fragmentation; });
  figure("evictions", [](const Step& step) { return step.evictions; });
  figure("evicted_bytes", [](const Step& step) { return step.evicted_bytes; });
  figure("moved_bytes", [](const Step& step) { return step.moved_bytes; });
  figure("moving_ns", [](const Step& step) { return step.moving_ns; });
  figure("recomputed_calls", [](const Step& step) { return step.recomputed_calls; });
  figure("searches", [](const Step& step) { return step.searches; });
  figure("search_ns", [](const Step& step) { return step.search_ns; });
  if (result.failure) {
    json.key("failure");
    json.begin_object();
    json.field("op", result.failure->op);
    json.field("event", result.failure->event);
    json.field("step", result.failure->step);
    json.field("requested_bytes", result.failure->memory.requested);
    json.field("why", result.failure->why);
    json.end_object();
  }
}

void write_smallest_budget(JsonWriter& json, const std::optional<sim::SmallestBudget>& smallest) {
  const bool has_one = smallest && smallest->bytes > 0;
  json.field("smallest_budget_bytes", has_one ? std::optional(smallest->bytes) : std::nullopt);
  json.field("is_complete", !smallest || smallest->is_final);
}

std::string place_of(const sim::FailedAt& failure) {
  const std::string op =
      failure.op.empty() ? "where all that is wanted in the end must be there" : "in " + failure.op;
  return op + ", step " + std::to_string(failure.step + 1);
}

}  // namespace coop::cli
