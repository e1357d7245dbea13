#pragma once

// Finds out that a sequence repeats itself, and after how many elements.
//
// Each element is known by a mark. The last few marks together are looked up: where they were seen before, the
// sequence may be repeating what followed then. It is taken to do so once it has done so for a third of
// the distance. An element that is another one now and then (a batch that is new in every step) is no reason to
// think otherwise; many are, and so is a run at another distance.

#include <array>
#include <cstdint>
#include <optional>

#include "core/base/numbered_queue.hpp"
#include "core/forecast/latest_numbers.hpp"

namespace coop {

class Repetition {
 public:
  // The number of the next element, which is counted up by one from call to call, and its mark.
  void add(std::uint64_t number, std::uint64_t mark);

  // Where the sequence was when it did what it is doing now; none: nowhere that is known.
  [[nodiscard]] std::optional<std::uint64_t> earlier() const { return earlier_; }
  // After how many elements it repeats itself; 0: it does not.
  [[nodiscard]] std::uint64_t period() const {
    return run_.repeated >= kLeastRun && 3 * run_.repeated >= run_.distance ? run_.distance : 0;
  }

 private:
  static constexpr std::uint64_t kMarks = 4;  // that are looked up together
  static constexpr std::uint64_t kLeastRun = 16;
  static constexpr std::size_t kMostSeen = std::size_t{1} << 17U;

  // Elements that were the same as those a certain distance before.
  struct Run {
    std::uint64_t distance = 0;
    std::uint64_t repeated = 0;
    std::uint64_t others = 0;  // that were not
  };

  [[nodiscard]] std::optional<std::uint64_t> look_up(std::uint64_t number, std::uint64_t together);

  // The last few marks together: when they were seen last, and those of every number.
  LatestNumbers seen_{kMostSeen};
  NumberedQueue<std::uint64_t> together_;
  std::array<std::uint64_t, kMarks> marks_{};
  std::optional<std::uint64_t> earlier_;
  Run run_;
  Run challenger_;
};

}  // namespace coop
