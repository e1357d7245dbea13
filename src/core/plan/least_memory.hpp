#pragma once

#include "core/base/bytes.hpp"
#include "core/plan/step_facts.hpp"

namespace coop {

// What no plan can do with less than: what cannot be dropped, and what a call needs at once. Linear in the step, so
// that a hopeless budget is told from a tight one before anything is searched.
[[nodiscard]] Bytes least_memory(const StepFacts& facts);

}  // namespace coop
