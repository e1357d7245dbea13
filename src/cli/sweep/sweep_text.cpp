#include <algorithm>
#include <functional>
#include <optional>

#include "cli/sweep/sweep_report.hpp"
#include "cli/text/format.hpp"
#include "cli/text/joined.hpp"
#include "cli/text/table.hpp"

namespace coop::cli {
namespace {

constexpr const char* kDoesNotFit = "-";
constexpr const char* kNotRun = "?";

// One line for each policy, one column for each ratio.
class SweepTable {
 public:
  explicit SweepTable(const SweepPlan& plan) : plan_(plan) {
    std::vector<std::string> header{"budget / peak"};
    for (const double ratio : plan.ratios) header.push_back(format_ratio(ratio));
    table_.add_row(header);
  }

  // shown(policy, ratio), both by number.
  using Shown = std::function<std::string(std::size_t, std::size_t)>;
  void add_policies(const std::string& heading, const Shown& shown) {
    table_.add_heading(heading);
    for (std::size_t policy = 0; policy < plan_.policies.size(); ++policy) {
      std::vector<std::string> row{"  " + plan_.policies[policy]};
      for (std::size_t ratio = 0; ratio < plan_.ratios.size(); ++ratio) {
        row.push_back(shown(policy, ratio));
      }
      table_.add_row(row);
    }
  }

  void add_reference(const Reference& reference) {
    std::vector<std::string> row{"  (" + reference.name + ")"};
    for (const double ratio : plan_.ratios) {
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
  const SweepPlan& plan_;
  Table table_;
};

// What is told of a step, and how.
struct Figure {
  double (*of)(const sim::StepResult&);
  std::string (*shown)(double);
};
using Step = sim::StepResult;
constexpr Figure kOverhead{[](const Step& step) { return step.overhead(); }, format_percent};
constexpr Figure kFragmentation{[](const Step& step) { return step.fragmentation; },
                                format_percent};
constexpr Figure kSearchMs{
    [](const Step& step) { return static_cast<double>(step.search_ns) / 1e6; },
    [](double ms) { return format_decimal(ms, 2); }};

std::string headline(const LoadedTrace& loaded) {
  const auto steps = static_cast<double>(loaded.trace.step_count());
  return loaded.name + ": peak " + format_bytes(loaded.demand.peak_bytes) + ", " +
         format_time(loaded.demand.base_ns / steps) + " and " +
         format_decimal(static_cast<double>(loaded.trace.call_count()) / steps, 0) +
         " calls a step\n";
}

std::string trace_text(const Sweep& sweep, std::size_t trace,
                       const std::vector<Reference>& references) {
  const auto cells = [&](const Figure& figure) {
    return [&sweep, trace, &figure](std::size_t policy, std::size_t ratio) -> std::string {
      const auto& result = sweep.result({.trace = trace, .policy = policy, .ratio = ratio});
      if (!result) return kNotRun;
      return result->is_ok() ? figure.shown(figure.of(result->last())) : kDoesNotFit;
    };
  };
  const LoadedTrace& loaded = sweep.plan().traces[trace];
  SweepTable table(sweep.plan());
  table.add_policies("Overhead: time over the time without a budget, less one", cells(kOverhead));
  for (const Reference& each : references_for(references, loaded.name)) table.add_reference(each);
  table.add_policies("Fragmentation: free when an allocation that had to evict was served",
                     cells(kFragmentation));
  table.add_policies("Search time: ms a step spent choosing what to evict", cells(kSearchMs));
  return headline(loaded) + table.text();
}

// All traces at one ratio.
class AcrossTraces {
 public:
  AcrossTraces(const Sweep& sweep, std::size_t ratio) : sweep_(sweep), ratio_(ratio) {
    const SweepPlan& plan = sweep.plan();
    for (std::size_t trace = 0; trace < plan.traces.size(); ++trace) {
      bool fits_all = true;
      for (std::size_t policy = 0; policy < plan.policies.size(); ++policy) {
        const auto& result = at(trace, policy);
        is_complete_ = is_complete_ && result.has_value();
        fits_all = fits_all && result && result->is_ok();
      }
      if (fits_all) common_.push_back(trace);
    }
  }

  [[nodiscard]] std::string fitting(std::size_t policy) const {
    if (!is_complete_) return kNotRun;
    std::size_t count = 0;
    for (std::size_t trace = 0; trace < sweep_.plan().traces.size(); ++trace) {
      if (at(trace, policy)->is_ok()) ++count;
    }
    return std::to_string(count);
  }

  // Of those that fit with all policies: in how many no other has less overhead, as far as it is shown.
  [[nodiscard]] std::string lowest(std::size_t policy) const {
    if (!is_complete_) return kNotRun;
    constexpr double kShown = 0.0005;
    const auto is_lowest = [&](std::size_t trace) {
      const double own = at(trace, policy)->last().overhead();
      for (std::size_t other = 0; other < sweep_.plan().policies.size(); ++other) {
        if (at(trace, other)->last().overhead() < own - kShown) return false;
      }
      return true;
    };
    return std::to_string(std::ranges::count_if(common_, is_lowest));
  }

  // Over the traces that fit with every policy: others would compare a policy that has paid for a
  // difficult trace with one that has given up.
  [[nodiscard]] std::string mean(std::size_t policy, const Figure& figure) const {
    if (!is_complete_) return kNotRun;
    if (common_.empty()) return kDoesNotFit;
    double sum = 0;
    for (const std::size_t trace : common_) sum += figure.of(at(trace, policy)->last());
    return figure.shown(sum / static_cast<double>(common_.size()));
  }

 private:
  [[nodiscard]] const std::optional<sim::SimulationResult>& at(std::size_t trace,
                                                               std::size_t policy) const {
    return sweep_.result({.trace = trace, .policy = policy, .ratio = ratio_});
  }

  const Sweep& sweep_;
  std::size_t ratio_;
  bool is_complete_ = true;
  std::vector<std::size_t> common_;  // traces that fit with every policy
};

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
    if (i > 0) text += '\n';
    text += trace_text(sweep, i, references);
  }
  const std::string remarks = legend(sweep);
  if (!remarks.empty()) text += joined({"\n", remarks});
  return text;
}

std::string sweep_summary(const Sweep& sweep) {
  const SweepPlan& plan = sweep.plan();
  std::vector<AcrossTraces> ratios;
  for (std::size_t i = 0; i < plan.ratios.size(); ++i) ratios.emplace_back(sweep, i);
  const auto means = [&](const Figure& figure) {
    return
        [&](std::size_t policy, std::size_t ratio) { return ratios[ratio].mean(policy, figure); };
  };
  SweepTable table(plan);
  table.add_policies("Fits: how many of the " + format_count(plan.traces.size(), "trace"),
                     [&](auto policy, auto ratio) { return ratios[ratio].fitting(policy); });
  table.add_policies("Overhead: mean over the traces that fit with all of these", means(kOverhead));
  table.add_policies("Lowest: in how many of the same traces no other policy has less",
                     [&](auto policy, auto ratio) { return ratios[ratio].lowest(policy); });
  table.add_policies("Fragmentation: mean over the same traces", means(kFragmentation));
  table.add_policies("Search time: ms a step, mean over the same traces", means(kSearchMs));
  return sweep.is_complete() ? table.text() : joined({table.text(), "\n", legend(sweep)});
}

}  // namespace coop::cli
