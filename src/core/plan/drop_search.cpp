#include "core/plan/drop_search.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace coop {
namespace {

using Detail = StepEvaluation::Detail;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

constexpr int kMostRounds = 300;
// The worst moment has not got better in this many batches after the first few: it will not.
constexpr int kFirstRounds = 20;
constexpr int kMostStuck = 40;
// Part of the excess that a batch covers, and how much worse than its first the others may be.
constexpr double kBatch = 0.2;
constexpr double kSpread = 2;
// What a batch must bring of what it promised.
constexpr double kDisappointing = 0.5;
constexpr std::size_t kTrials = 8;
// Of what was paid per byte: what is looked into, in this search and in the next that begins with its result.
constexpr double kPriceLimit = 64;
constexpr double kNextPriceLimit = 4;
constexpr double kPriceStep = 8;
constexpr double kMostPrice = 1e6;  // nanoseconds per byte

// A free drop is worth the more, the more it takes.
constexpr double kLeastCost = 1;  // nanoseconds

}  // namespace

DropSearch::DropSearch(const StepFacts& facts, Bytes budget)
    : facts_(facts),
      budget_(budget),
      evaluation_(facts),
      drops_(facts.versions.size()),
      superfluous_(facts, budget),
      price_limit_(kInfinite),
      most_overhead_(kInfinite),
      is_barred_(facts.versions.size()),
      taken_in_(facts.versions.size()) {}

bool DropSearch::fit() {
  double last_worst = 0;
  int stuck = 0;
  bool is_disappointed = false;
  batch_.clear();
  evaluation_.price_limit = price_limit_;
  for (int round = 0; round < kMostRounds; ++round) {
    if (evaluations_ >= most_evaluations_ || !evaluate(Detail::kGaps)) return false;
    if (evaluation_.overhead() >= most_overhead_) return false;
    if (evaluation_.most() <= budget_) {
      remember_price();
      return true;
    }
    if (is_disappointing()) {
      take_back();
      is_disappointed = true;
      continue;
    }
    batch_.clear();
    excess_.measure(evaluation_.memory(), budget_);
    find_candidates();
    if (must_look_further()) continue;
    if (candidates_.empty()) return false;
    if (std::exchange(is_disappointed, false)) {
      try_one_by_one();
      continue;
    }
    take_batch();
    const bool is_stuck = excess_.worst() >= last_worst && round > kFirstRounds;
    stuck = is_stuck ? stuck + 1 : 0;
    if (stuck > kMostStuck) return false;
    last_worst = excess_.worst();
  }
  return false;
}

void DropSearch::remember_price() {
  if (paid_ == 0) return;
  const double before = price_limit_ == kInfinite ? 0 : price_limit_;
  price_limit_ = std::max(before, kNextPriceLimit * paid_);
}

// Something beyond the price limit may be better than the best before it.
bool DropSearch::must_look_further() {
  double& limit = evaluation_.price_limit;
  if (limit == kInfinite) return false;
  for (const Candidate& candidate : candidates_) {
    if (candidate.score < unseen_) return false;
  }
  limit = limit * kPriceStep > kMostPrice ? kInfinite : limit * kPriceStep;
  return true;
}

bool DropSearch::evaluate(Detail detail) {
  ++evaluations_;
  return evaluation_.run(drops_, detail);
}

// --- candidates ---

void DropSearch::find_candidates() {
  candidates_.clear();
  children_.clear();
  unseen_ = kInfinite;
  const std::vector<Gap>& gaps = evaluation_.gaps();
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    const Gap& gap = gaps[i];
    if (gap.is_dropped || is_barred_[gap.version]) continue;
    const Bytes bytes = facts_.versions[gap.version].bytes;
    const double takes = excess_.taken_by(gap, bytes);
    if (takes <= 0) continue;
    if (gap.is_too_dear) {
      unseen_ = std::min(unseen_, evaluation_.price_limit * static_cast<double>(bytes) / takes);
      continue;
    }
    if (gap.parent != StepFacts::kNone) {
      const double own = facts_.cost[facts_.versions[gap.version].producer];
      children_.push_back({gap.parent, own, gap.extra_cost - own, takes, i});
    }
    candidates_.push_back({(gap.extra_cost + kLeastCost) / takes, takes, i});
  }
  find_groups();
}

void DropSearch::find_groups() {
  groups_.clear();
  std::sort(children_.begin(), children_.end(), [](const Child& a, const Child& b) {
    if (a.parent != b.parent) return a.parent < b.parent;
    const double left = a.own * b.takes;
    const double right = b.own * a.takes;
    return left != right ? left < right : a.gap < b.gap;
  });
  for (std::size_t begin = 0, end = 0; begin < children_.size(); begin = end) {
    while (end < children_.size() && children_[end].parent == children_[begin].parent) ++end;
    add_group(begin, end);
  }
}

void DropSearch::add_group(std::size_t begin, std::size_t end) {
  double own = 0;
  double rest = 0;
  double takes = 0;
  Candidate best{.score = kInfinite};
  std::size_t best_end = begin;
  for (std::size_t i = begin; i < end; ++i) {
    own += children_[i].own;
    rest = std::max(rest, children_[i].rest);
    takes = std::min(takes + children_[i].takes, excess_.total());
    const double score = (own + rest) / takes;
    if (score >= best.score) continue;
    best = {score, takes, children_[begin].gap, static_cast<std::uint32_t>(groups_.size())};
    best_end = i + 1;
  }
  if (best_end - begin < 2) return;
  groups_.push_back({begin, best_end});
  candidates_.push_back(best);
}

template <typename Visit>
void DropSearch::for_each_gap(const Candidate& candidate, const Visit& visit) const {
  if (candidate.group == StepFacts::kNone) {
    visit(evaluation_.gaps()[candidate.gap]);
    return;
  }
  const Group& group = groups_[candidate.group];
  for (std::size_t i = group.begin; i < group.end; ++i) {
    visit(evaluation_.gaps()[children_[i].gap]);
  }
}

// Of the candidates from `begin` on, the best come first, in order, up to `end`.
void DropSearch::sort_best(std::size_t begin, std::size_t end) {
  const auto at = [&](std::size_t i) {
    return candidates_.begin() + static_cast<std::ptrdiff_t>(i);
  };
  std::partial_sort(at(begin), at(end), candidates_.end(),
                    [](const Candidate& a, const Candidate& b) {
                      if (a.score != b.score) return a.score < b.score;
                      return a.gap != b.gap ? a.gap < b.gap : a.group < b.group;
                    });
}

// --- batches ---

void DropSearch::take_batch() {
  ++batches_;
  double taken = 0;
  double first_score = 0;
  std::size_t sorted = 0;
  for (std::size_t i = 0; i < candidates_.size() && taken < kBatch * excess_.total(); ++i) {
    if (i == sorted) {  // more only if they are needed
      sorted = std::min(candidates_.size(), std::max<std::size_t>(16, 4 * sorted));
      sort_best(i, sorted);
    }
    const Candidate& candidate = candidates_[i];
    if (!evaluation_.gaps()[candidate.gap].is_last) {
      if (first_score == 0) {
        first_score = candidate.score;
      } else if (candidate.score > std::min(kSpread * first_score, unseen_)) {
        break;
      }
    }
    for_each_gap(candidate, [&](const Gap& gap) { take(gap); });
    taken += candidate.takes;
  }
  double& limit = evaluation_.price_limit;
  if (limit == kInfinite && paid_ > 0) limit = kPriceLimit * paid_;
  promised_ = std::min(1.0, taken / excess_.total());
  batch_worst_ = excess_.worst();
  batch_excess_ = Excess::weigh(evaluation_.memory(), budget_, batch_worst_);
}

void DropSearch::take(const Gap& gap) {
  // A second drop of the same version would cost something else.
  if (taken_in_[gap.version] == batches_) return;
  taken_in_[gap.version] = batches_;
  batch_.push_back({gap.version, gap.from});
  drops_.add(batch_.back());
  if (gap.is_last) return;
  paid_ = std::max(paid_, gap.cost / static_cast<double>(facts_.versions[gap.version].bytes));
}

bool DropSearch::is_disappointing() {
  if (batch_.empty()) return false;
  const double left = Excess::weigh(evaluation_.memory(), budget_, batch_worst_);
  return batch_excess_ - left < kDisappointing * promised_ * batch_excess_;
}

void DropSearch::take_back() {
  for (const Drop& drop : batch_) drops_.remove(drop);
  batch_.clear();
}

void DropSearch::try_one_by_one() {
  const std::size_t trials = std::min(candidates_.size(), kTrials);
  sort_best(0, trials);
  std::vector<std::vector<Drop>> drops(trials);
  for (std::size_t i = 0; i < trials; ++i) {
    for_each_gap(candidates_[i], [&](const Gap& gap) {
      drops[i].push_back({gap.version, gap.from});
    });
  }
  const double worst = excess_.worst();
  const double overhead = evaluation_.overhead();
  const double excess = Excess::weigh(evaluation_.memory(), budget_, worst);
  double best_score = kInfinite;
  std::size_t best = trials_++ % trials;  // none may help by itself
  for (std::size_t i = 0; i < trials; ++i) {
    for (const Drop& drop : drops[i]) drops_.add(drop);
    const bool is_possible = evaluate(Detail::kMemory);
    const double taken = excess - Excess::weigh(evaluation_.memory(), budget_, worst);
    const double score = (evaluation_.overhead() - overhead + kLeastCost) / taken;
    if (is_possible && taken > 1e-12 && score < best_score) {
      best_score = score;
      best = i;
    }
    for (const Drop& drop : drops[i]) drops_.remove(drop);
  }
  for (const Drop& drop : drops[best]) drops_.add(drop);
}

}  // namespace coop
