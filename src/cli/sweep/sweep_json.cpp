#include "cli/commands/result_fields.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "cli/text/json.hpp"

namespace coop::cli {
namespace {

void write_reference(JsonWriter& json, const LoadedTrace& loaded, const Reference& reference) {
  for (const ReferenceFigure& figure : reference.figures) {
    json.begin_object();
    json.field("trace", loaded.path);
    json.field("reference", reference.name);
    json.field("ratio", figure.ratio);
    json.field("overhead", figure.overhead);
    json.end_object();
  }
}

}  // namespace

std::string sweep_json(const Sweep& sweep, const std::vector<Reference>& references) {
  const SweepPlan& plan = sweep.plan();
  JsonWriter json;
  json.begin_object();
  json.field("is_complete", sweep.is_complete());
  json.key("results");
  json.begin_array();
  for (std::size_t i = 0; i < sweep.cell_count(); ++i) {
    const Cell cell = sweep.cell(i);
    const auto& result = sweep.result(cell);
    if (!result) continue;
    json.begin_object();
    json.field("ratio", plan.ratios[cell.ratio]);
    write_result_fields(json, plan.traces[cell.trace], plan.policies[cell.policy], *result);
    json.end_object();
  }
  json.end_array();
  json.key("references");
  json.begin_array();
  for (const LoadedTrace& loaded : plan.traces) {
    for (const Reference& each : references_for(references, loaded.name)) {
      write_reference(json, loaded, each);
    }
  }
  json.end_array();
  json.end_object();
  return json.finish();
}

}  // namespace coop::cli
