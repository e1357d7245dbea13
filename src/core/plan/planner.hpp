#pragma once

#include <optional>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/byte_range.hpp"
#include "core/plan/step_plan.hpp"
#include "core/plan/step_record.hpp"

namespace coop {

struct PlanOptions {
  Bytes budget = 0;
  // Blocks up to this size lie in slabs: they are counted, never dropped, and have no planned place.
  Bytes small_limit = 0;
  // What lies in the pool when the step begins, in no particular order: nothing is placed there, even if it goes in
  // the course of the step. It is counted, with what the record says is there, so that neither counts twice.
  std::vector<ByteRange> held;
  std::uint32_t most_depth = 2000;  // see EngineOptions
};

// None if no plan was found that fits.
[[nodiscard]] std::optional<StepPlan> plan_step(const StepRecord& step, const PlanOptions& options);

}  // namespace coop
