#pragma once

// Drops that a step does without once it fits.
//
// Note [Superfluous drops]
//
// The greedy search goes from drop to drop, and what it chose first may be covered by what it had to choose later. So,
// once the step fits, drops are taken back, those that save the most first, as long as there is room for what they
// dropped all through the gap. What comes back for the same call was made together, from the same past versions:
// it is weighed together, and then each by itself.
//
// Whether there is room is read off the memory of the last evaluation. That all of it fits together is left to one more:
// what stays may change what has to be made again, and when.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/drops.hpp"
#include "core/plan/memory_profile.hpp"
#include "core/plan/step_evaluation.hpp"
#include "core/plan/step_facts.hpp"

namespace coop {

class SuperfluousDrops {
 public:
  SuperfluousDrops(const StepFacts& facts, Bytes budget) : facts_(facts), budget_(budget) {}

  // Those that could be taken back together, as far as one can see, the most worthwhile first. The evaluation
  // has gaps.
  [[nodiscard]] const std::vector<Drop>& find(const StepEvaluation& evaluation);

 private:
  struct Candidate {
    double saves = 0;         // nanoseconds
    std::uint32_t begin = 0;  // of order_
    std::uint32_t end = 0;
  };

  void find_candidates(const StepEvaluation& evaluation);
  [[nodiscard]] bool fits(std::span<const std::uint32_t> gaps, const std::vector<Gap>& all,
                          MemoryProfile& profile) const;

  const StepFacts& facts_;
  Bytes budget_;
  std::vector<std::uint32_t> order_;  // gaps that are dropped, by the call for which they come back
  std::vector<Candidate> candidates_;
  std::vector<bool> is_taken_;  // by gap
  std::vector<Drop> found_;
};

}  // namespace coop
