#pragma once

// What is to be in memory when, and where, in a step that is expected to be the same as one that was
// recorded (core/plan/step_record.hpp). It is advice: whoever follows it and finds something different goes on
// without it, and nothing is wrong.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"

namespace coop {

class StepPlan {
 public:
  // What a call makes: versions of contents, numbered over the whole step.
  using Version = std::uint32_t;
  [[nodiscard]] Version version(std::size_t call, std::size_t output) const {
    return first_version[call] + static_cast<Version>(output);
  }

  [[nodiscard]] std::uint32_t outputs(std::size_t call) const {
    return first_version[call + 1] - first_version[call];
  }

  // A version's memory goes when it was last touched in call `from`, and it comes back for call `until`, or by then
  // nobody needs it. Touched: the call reads or makes it; or only calls that run again for the call do, and then
  // it goes when the last of these is over. What is there and is made once more is not touched by that.
  struct Absence {
    std::uint32_t from = 0;
    std::uint32_t until = 0;
  };
  // After this call, before the next.
  [[nodiscard]] bool is_absent(Version version, std::size_t call) const;

  struct Place {
    Bytes bytes = 0;
    Bytes offset = 0;
  };
  // In place of a call: what comes from outside before `call`, in the order in which it does.
  static constexpr std::uint32_t kOutside = 0xFFFFFFFF;
  // Where the large blocks lie that call `by` allocates, in the order in which it does: itself, or run again for
  // the inputs of `call`. None: anywhere.
  [[nodiscard]] std::span<const Place> places(std::size_t call, std::size_t by) const;

  // --- by call; the end of the step counts as one ---
  std::vector<Version> first_version;
  std::vector<std::vector<Version>> goes_after;   // versions whose absence begins
  std::vector<std::vector<Version>> comes_along;  // made with what the call needs, for later
  // --- by version ---
  std::vector<std::vector<Absence>> absences;  // in order
  std::vector<bool>
      is_kept;  // its memory stays when its storage is released, for others that are made from it

  struct Allocations {
    std::uint32_t by = 0;
    std::vector<Place> places;
  };
  std::vector<std::vector<Allocations>> allocations;  // by call; for each in the order of `by`

  double overhead_ns = 0;  // of the recomputations in it
};

}  // namespace coop
