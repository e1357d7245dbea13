#include "core/forecast/repetition.hpp"

#include "core/forecast/hash.hpp"

namespace coop {

void Repetition::add(std::uint64_t number, std::uint64_t mark) {
  marks_[number % kMarks] = mark;
  std::uint64_t together = 0;
  for (std::uint64_t i = 1; i <= kMarks; ++i) {
    together = mixed(together, marks_[(number + i) % kMarks]);
  }
  if (seen_.size() >= kMostSeen) seen_.clear();
  const auto [found, is_new] = seen_.try_emplace(together, number);
  earlier_ = is_new ? std::nullopt : std::optional(found->second);
  found->second = number;

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
