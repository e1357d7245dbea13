#include "core/forecast/repetition.hpp"

#include <algorithm>
#include <utility>

#include "core/base/hash.hpp"

namespace coop {

// Where it goes on repeating what it has been repeating, that counts, even if the same has come by since: a
// step has loops of its own.
std::optional<std::uint64_t> Repetition::look_up(std::uint64_t number, std::uint64_t together) {
  if (together_.empty()) first_ = number;
  together_.push_back(together);
  if (together_.size() > kMostSeen) {
    together_.pop_front();
    ++first_;
  }
  if (seen_.size() >= kMostSeen) seen_.clear();
  const auto [found, is_new] = seen_.try_emplace(together, number);
  const std::uint64_t latest = std::exchange(found->second, number);
  const std::uint64_t expected = number - std::min(number, run_.distance);
  const bool goes_on =
      run_.distance > 0 && expected >= first_ && together_[expected - first_] == together;
  if (goes_on) return expected;
  return is_new ? std::nullopt : std::optional(latest);
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
