// Once the step fits: what costs less and fits, too.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/plan/drop_search.hpp"

namespace coop {
namespace {

using Detail = StepEvaluation::Detail;

// Replays that are done without, one at a time, and evaluations for each.
constexpr std::size_t kMostThoughts = 8;
constexpr std::size_t kMostEvaluationsEach = 30;
// Moments that are evaluated for drops that are taken back at random without anything better being found, some ten
// milliseconds whatever the step; and in all.
constexpr std::size_t kMostInVain = 200'000;
constexpr std::size_t kMostMoments = 1'000'000;
constexpr std::uint64_t kOneIn = 10;
// Rounds in which superfluous drops are taken back: most find nothing any more after a few.
constexpr int kMostTakenBack = 50;

}  // namespace

// Later, when blocks did not fit and a few drops more were needed, only what these have made superfluous is looked for.
void DropSearch::improve() {
  take_back_all_superfluous();
  let_go_of_what_is_kept_in_vain();
  if (std::exchange(has_had_second_thoughts_, true) || evaluation_.overhead() == 0) return;
  const std::size_t evaluations = evaluations_;
  Drops best = drops_;
  most_overhead_ = evaluation_.overhead();
  const auto keep_if_better = [&](bool is_better) {
    if (is_better) {
      best = drops_;
      most_overhead_ = evaluation_.overhead();
    } else {
      drops_ = best;
    }
  };
  for (const Replay& replay : dearest_replays()) {
    most_evaluations_ = evaluations_ + kMostEvaluationsEach;
    keep_if_better(find_other_than(replay));
  }
  SplitMix random(1);
  std::size_t left = kMostMoments / (facts_.calls + 1);
  std::size_t in_vain = kMostInVain / (facts_.calls + 1);
  while (left > 0 && in_vain > 0) {
    const std::size_t before = evaluations_;
    most_evaluations_ = evaluations_ + std::min(left, kMostEvaluationsEach);
    const bool is_better = find_other_than_some(random);
    keep_if_better(is_better);
    const std::size_t made = std::max<std::size_t>(1, evaluations_ - before);
    left -= std::min(left, made);
    in_vain = is_better ? kMostInVain / (facts_.calls + 1) : in_vain - std::min(in_vain, made);
  }
  let_go_of_what_is_kept_in_vain();
  most_overhead_ = std::numeric_limits<double>::infinity();
  most_evaluations_ = kMostEvaluations;
  evaluations_ = evaluations;  // those that the search is allowed are its own
}

std::vector<DropSearch::Replay> DropSearch::dearest_replays() const {
  std::vector<std::pair<StepFacts::Call, const Gap*>> gaps;
  for (const Gap& gap : evaluation_.gaps()) {
    if (gap.is_dropped && !gap.is_last) gaps.emplace_back(gap.until, &gap);
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Replay> replays;
  for (std::size_t begin = 0, end = 0; begin < gaps.size(); begin = end) {
    Replay& replay = replays.emplace_back();
    double saved = 0;
    for (; end < gaps.size() && gaps[end].first == gaps[begin].first; ++end) {
      const Gap& gap = *gaps[end].second;
      const auto bytes = static_cast<double>(facts_.versions[gap.version].bytes);
      saved += bytes * (gap.before - gap.after);
      replay.versions.push_back(gap.version);
    }
    replay.price = evaluation_.ran_again_for(gaps[begin].first) / saved;
  }
  std::stable_sort(replays.begin(), replays.end(),
                   [](const Replay& a, const Replay& b) { return a.price > b.price; });
  if (replays.size() > kMostThoughts) replays.resize(kMostThoughts);
  return replays;
}

// Cheaper than the best so far, or false.
bool DropSearch::find_other_than(const Replay& replay) {
  bool is_other = false;
  for (const StepFacts::Version version : replay.versions) {
    is_other = is_other || drops_.has_some(version);
    drops_.remove_all(version);
    is_barred_[version] = true;
  }
  const bool has_found = is_other && fit();
  if (has_found) take_back_all_superfluous();
  for (const StepFacts::Version version : replay.versions) is_barred_[version] = false;
  return has_found;
}

bool DropSearch::find_other_than_some(SplitMix& random) {
  for (StepFacts::Version version = 0; version < facts_.versions.size(); ++version) {
    if (drops_.has_some(version) && random.next() % kOneIn == 0) drops_.remove_all(version);
  }
  if (!fit()) return false;
  take_back_all_superfluous();
  return true;
}

void DropSearch::take_back_all_superfluous() {
  for (int round = 0; round < kMostTakenBack && take_back_superfluous(); ++round) {
  }
}

// What was dropped for it has been taken back: nothing is made from it.
void DropSearch::let_go_of_what_is_kept_in_vain() {
  if (!drops_.keeps_some()) return;
  static_cast<void>(evaluate(Detail::kGaps));
  for (const Gap& gap : evaluation_.gaps()) {
    const bool is_never_used = gap.is_last && gap.from < facts_.versions[gap.version].current_until;
    if (is_never_used && drops_.keeps(gap.version)) drops_.set_kept(gap.version, false);
  }
  static_cast<void>(evaluate(Detail::kGaps));
}

// See Note [Superfluous drops]. False: there is nothing to take back.
bool DropSearch::take_back_superfluous() {
  const double overhead = evaluation_.overhead();
  std::vector<Drop> found = superfluous_.find(evaluation_);
  if (found.empty()) return false;
  for (; !found.empty(); found.resize(found.size() / 2)) {
    for (const Drop& drop : found) drops_.remove(drop);
    const bool is_possible = evaluate(Detail::kGaps);
    if (is_possible && evaluation_.most() <= budget_ && evaluation_.overhead() < overhead) {
      return true;
    }
    for (const Drop& drop : found) drops_.add(drop);
  }
  static_cast<void>(evaluate(Detail::kGaps));  // as it was
  return false;
}

}  // namespace coop
