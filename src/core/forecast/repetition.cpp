#include "core/forecast/repetition.hpp"

#include <algorithm>

#include "core/base/hash.hpp"

namespace coop {

// Where it goes on repeating what it has been repeating, that counts, even if the same has come by since: a
// step has loops of its own.
std::optional<std::uint64_t> Repetition::look_up(std::uint64_t number, std::uint64_t together) {
  if (together_.size() == 0) together_ = NumberedQueue<std::uint64_t>(number);
  if (together_.size() == kMostSeen) together_.forget_until(together_.first() + 1);
  together_.push(together);
  const std::optional<std::uint64_t> latest = seen_.replace(together, number);
  const std::uint64_t expected = number - std::min(number, run_.distance);
  const bool goes_on =
      run_.distance > 0 && together_.contains(expected) && together_[expected] == together;
  return goes_on ? expected : latest;
}

void Repetition::add(std::uint64_t number, std::uint64_t mark) {
  marks_[number % kMarks] = mark;
  std::uint64_t together = 0;
  for (std::uint64_t i = 1; i <= kMarks; ++i) {
    together = mixed(together, marks_[(number + i) % kMarks]);
  }
  earlier_ = look_up(number, together);

  const std::uint64_t distance = earlier_ ? number - *earlier_ : 0;
  if (distance > 0 && distance == run_.distance) {
    ++run_.repeated;
    challenger_ = {};
    return;
  }
  ++run_.others;
  if (distance > 0) {
    if (distance != challenger_.distance) challenger_ = {.distance = distance};
    ++challenger_.repeated;
  }
  const bool is_over = 4 * run_.others > run_.repeated + kLeastRun;
  if (is_over || challenger_.repeated >= kLeastRun) {
    run_ = challenger_;
    challenger_ = {};
  }
}

}  // namespace coop
