#include "core/plan/superfluous_drops.hpp"

#include <algorithm>
#include <cstddef>

namespace coop {

const std::vector<Drop>& SuperfluousDrops::find(const StepEvaluation& evaluation) {
  find_candidates(evaluation);
  const std::vector<Gap>& gaps = evaluation.gaps();
  MemoryProfile profile(evaluation.memory());
  is_taken_.assign(gaps.size(), false);
  found_.clear();
  for (const Candidate& candidate : candidates_) {
    const std::span<const std::uint32_t> those(order_.data() + candidate.begin,
                                               candidate.end - candidate.begin);
    if (is_taken_[those.front()] || !fits(those, gaps, profile)) continue;
    for (const std::uint32_t gap : those) {
      is_taken_[gap] = true;
      found_.push_back({gaps[gap].version, gaps[gap].from});
    }
  }
  return found_;
}

void SuperfluousDrops::find_candidates(const StepEvaluation& evaluation) {
  const std::vector<Gap>& gaps = evaluation.gaps();
  order_.clear();
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].is_dropped && !gaps[i].is_last) order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return gaps[a].until != gaps[b].until ? gaps[a].until < gaps[b].until : a < b;
  });
  candidates_.clear();
  for (std::uint32_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    const StepFacts::Call until = gaps[order_[begin]].until;
    while (end < order_.size() && gaps[order_[end]].until == until) ++end;
    candidates_.push_back({evaluation.ran_again_for(until), begin, end});
    for (std::uint32_t i = begin; end - begin > 1 && i < end; ++i) {
      const StepFacts::Version version = gaps[order_[i]].version;
      candidates_.push_back({facts_.cost[facts_.versions[version].producer], i, i + 1});
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.saves != b.saves) return a.saves > b.saves;
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
}

// And then it has been added to the profile.
bool SuperfluousDrops::fits(std::span<const std::uint32_t> gaps, const std::vector<Gap>& all,
                            MemoryProfile& profile) const {
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const Gap& gap = all[gaps[i]];
    const MemoryProfile::Stretch stretch{gap.after + 1, gap.before};
    profile.add(stretch, facts_.versions[gap.version].bytes);
    if (profile.most(stretch) <= budget_) continue;
    for (std::size_t j = 0; j <= i; ++j) {
      const Gap& added = all[gaps[j]];
      profile.take({added.after + 1, added.before}, facts_.versions[added.version].bytes);
    }
    return false;
  }
  return true;
}

}  // namespace coop
