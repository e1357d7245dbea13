#pragma once

// Everything that a report on one run shows, for the page that draws it (python/coop/cli/page).

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/shared_options.hpp"
#include "cli/report/step_story.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/simulator/smallest_budget.hpp"

namespace coop::cli {

struct ReportedRun {
  const LoadedTrace& loaded;
  const std::string& policy;
  const sim::SimulationResult& result;
  const StepStory& story;
  bool is_floor_known = true;  // false: nobody looked for the smallest budget
  std::optional<sim::SmallestBudget> smallest;

  // Otherwise it is all that was recorded, however many there are in it.
  [[nodiscard]] bool has_steps() const {
    return loaded.trace.has_step_marks() || result.steps.size() > 1;
  }
  // Of the run itself if it did not fit, otherwise of one with a little less than the smallest budget.
  [[nodiscard]] const sim::FailedAt* tightest() const {
    if (!result.is_ok()) return &*result.failure;
    return smallest && smallest->tightest ? &*smallest->tightest : nullptr;
  }
};

// Blocks that are too many for a page are left out, those first that take least of the picture.
inline constexpr std::size_t kMostBlocksShown = 120'000;

[[nodiscard]] std::string report_json(const ReportedRun& run,
                                      std::size_t most_blocks = kMostBlocksShown);

// What there is to know and to do, in plain words, the most important first.
[[nodiscard]] std::vector<std::string> advice_on(const ReportedRun& run);

// "aten::mm in encoder.layer.0", "parameter fc.weight": what people call a block.
[[nodiscard]] std::string title_of(const ReportedRun& run, Token storage);
// "layer.*.attention", of "layer.3.attention": modules that are one another's like have one title.
[[nodiscard]] std::string without_numbers(const std::string& module);

}  // namespace coop::cli
