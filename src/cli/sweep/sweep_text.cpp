#include <functional>

#include "cli/sweep/sweep_report.hpp"
#include "cli/text/format.hpp"
#include "cli/text/joined.hpp"
#include "cli/text/table.hpp"

namespace coop::cli {
namespace {

constexpr const char* kDoesNotFit = "-";
constexpr const char* kNotRun = "?";

using Figure = std::function<std::string(const sim::StepResult&)>;

class TraceTable {
 public:
  TraceTable(const Sweep& sweep, std::size_t trace) : sweep_(sweep), trace_(trace) {
    std::vector<std::string> header{"budget / peak"};
    for (const double ratio : plan().ratios) header.push_back(format_ratio(ratio));
    table_.add_row(header);
  }

  void add_figures(const std::string& heading, const Figure& figure) {
    table_.add_heading(heading);
    for (std::size_t policy = 0; policy < plan().policies.size(); ++policy) {
      std::vector<std::string> row{"  " + plan().policies[policy]};
      for (std::size_t ratio = 0; ratio < plan().ratios.size(); ++ratio) {
        row.push_back(shown({.trace = trace_, .policy = policy, .ratio = ratio}, figure));
      }
      table_.add_row(row);
    }
  }

  void add_reference(const Reference& reference) {
    std::vector<std::string> row{"  (" + reference.name + ")"};
    for (const double ratio : plan().ratios) {
      const ReferenceFigure* figure = reference.at(ratio);
      if (figure == nullptr) {
        row.emplace_back();
      } else {
        row.push_back(figure->overhead ? format_percent(*figure->overhead) : kDoesNotFit);
      }
    }
    table_.add_row(row);
  }

  [[nodiscard]] std::string text() const { return table_.text(); }

 private:
  [[nodiscard]] const SweepPlan& plan() const { return sweep_.plan(); }
  [[nodiscard]] std::string shown(const Cell& cell, const Figure& figure) const {
    const auto& result = sweep_.result(cell);
    if (!result) return kNotRun;
    return result->is_ok() ? figure(result->last()) : kDoesNotFit;
  }

  const Sweep& sweep_;
  std::size_t trace_;
  Table table_;
};

std::string headline(const LoadedTrace& loaded) {
  const auto steps = static_cast<double>(loaded.trace.step_count());
  return loaded.name + ": peak " + format_bytes(loaded.demand.peak_bytes) + ", " +
         format_time(loaded.demand.base_ns / steps) + " and " +
         format_decimal(static_cast<double>(loaded.trace.call_count()) / steps, 0) +
         " calls a step\n";
}

std::string legend(const Sweep& sweep) {
  bool has_unfit = false;
  for (std::size_t i = 0; i < sweep.cell_count(); ++i) {
    const auto& result = sweep.result(sweep.cell(i));
    has_unfit = has_unfit || (result && !result->is_ok());
  }
  std::string text;
  if (has_unfit) text += "-: does not fit\n";
  if (!sweep.is_complete()) {
    text += "?: not run; interrupted after " + std::to_string(sweep.done_count()) + " of " +
            std::to_string(sweep.cell_count()) + "\n";
  }
  return text;
}

}  // namespace

std::string sweep_text(const Sweep& sweep, const std::vector<Reference>& references) {
  std::string text;
  for (std::size_t i = 0; i < sweep.plan().traces.size(); ++i) {
    const LoadedTrace& loaded = sweep.plan().traces[i];
    TraceTable table(sweep, i);
    table.add_figures("Overhead: time over the time without a budget, less one",
                      [](const auto& step) { return format_percent(step.overhead()); });
    for (const Reference& each : references_for(references, loaded.name)) {
      table.add_reference(each);
    }
    table.add_figures("Fragmentation: free when an allocation that had to evict was served",
                      [](const auto& step) { return format_percent(step.fragmentation); });
    table.add_figures("Search time: ms a step spent choosing what to evict", [](const auto& step) {
      return format_decimal(static_cast<double>(step.search_ns) / 1e6, 2);
    });
    if (i > 0) text += '\n';
    text += headline(loaded) + table.text();
  }
  const std::string remarks = legend(sweep);
  if (!remarks.empty()) text += joined({"\n", remarks});
  return text;
}

}  // namespace coop::cli
