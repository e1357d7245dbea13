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

DropSearch::DropSearch(const StepFacts& facts, Bytes budget, Keeping keeping)
    : facts_(facts),
      budget_(budget),
      keeping_(keeping),
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
  batch_ = {};
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
    batch_ = {};
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
    if (keeping_ == Keeping::kAllowed && gap.smaller != StepFacts::kNone) {
      children_.push_back({gap.smaller, true, gap.cost_if_kept, 0, takes, i});
    }
    if (gap.is_too_dear) {
      unseen_ = std::min(unseen_, evaluation_.price_limit * static_cast<double>(bytes) / takes);
      continue;
    }
    if (gap.parent != StepFacts::kNone) {
      const double own = facts_.cost[facts_.versions[gap.version].producer];
      children_.push_back({gap.parent, false, own, gap.extra_cost - own, takes, i});
    }
    candidates_.push_back({(gap.extra_cost + kLeastCost) / takes, takes, i});
  }
  find_groups();
}

void DropSearch::find_groups() {
  groups_.clear();
  std::sort(children_.begin(), children_.end(), [](const Child& a, const Child& b) {
    if (a.parent != b.parent) return a.parent < b.parent;
    if (a.is_parent_kept != b.is_parent_kept) return b.is_parent_kept;
    const double left = a.own * b.takes;
    const double right = b.own * a.takes;
    return left != right ? left < right : a.gap < b.gap;
  });
  for (std::size_t begin = 0, end = 0; begin < children_.size(); begin = end) {
    const Child& first = children_[begin];
    while (end < children_.size() && children_[end].parent == first.parent &&
           children_[end].is_parent_kept == first.is_parent_kept) {
      ++end;
    }
    first.is_parent_kept ? add_saving(begin, end) : add_group(begin, end);
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

// See Note [Keeping instead]. What it takes is looked at where all of the gaps are.
void DropSearch::add_saving(std::size_t begin, std::size_t end) {
  const StepFacts::Version kept = children_[begin].parent;
  const Bytes lost = facts_.versions[kept].bytes;
  Bytes bytes = 0;
  double cost = kLeastCost;
  Gap together{.before = std::numeric_limits<Moment>::max()};
  Candidate best{.score = kInfinite};
  std::size_t best_end = begin;
  for (std::size_t i = begin; i < end; ++i) {
    const Gap& gap = evaluation_.gaps()[children_[i].gap];
    bytes += facts_.versions[gap.version].bytes;
    cost += children_[i].own;
    together.after = std::max(together.after, gap.after);
    together.before = std::min(together.before, gap.before);
    const double takes = bytes > lost && together.after < together.before
                             ? excess_.taken_by(together, bytes - lost)
                             : 0;
    if (takes <= 0 || cost / takes >= best.score) continue;
    best = {cost / takes, takes, children_[begin].gap, static_cast<std::uint32_t>(groups_.size())};
    best_end = i + 1;
  }
  if (best_end == begin) return;
  groups_.push_back({begin, best_end, kept});
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
    take(candidate);
    taken += candidate.takes;
  }
  double& limit = evaluation_.price_limit;
  if (limit == kInfinite && paid_ > 0) limit = kPriceLimit * paid_;
  promised_ = std::min(1.0, taken / excess_.total());
  batch_worst_ = excess_.worst();
  batch_excess_ = Excess::weigh(evaluation_.memory(), budget_, batch_worst_);
}

void DropSearch::take(const Candidate& candidate) {
  const StepFacts::Version kept = kept_by(candidate);
  if (kept != StepFacts::kNone && !drops_.keeps(kept)) {
    batch_.kept.push_back(kept);
    drops_.set_kept(kept, true);
  }
  for_each_gap(candidate, [&](const Gap& gap) {
    // A second drop of the same version would cost something else.
    if (taken_in_[gap.version] == batches_) return;
    taken_in_[gap.version] = batches_;
    batch_.drops.push_back({gap.version, gap.from});
    drops_.add(batch_.drops.back());
    if (gap.is_last) return;
    const double cost = kept == StepFacts::kNone ? gap.cost : gap.cost_if_kept;
    paid_ = std::max(paid_, cost / static_cast<double>(facts_.versions[gap.version].bytes));
  });
}

bool DropSearch::is_disappointing() {
  if (batch_.is_empty()) return false;
  const double left = Excess::weigh(evaluation_.memory(), budget_, batch_worst_);
  return batch_excess_ - left < kDisappointing * promised_ * batch_excess_;
}

void DropSearch::take_back() {
  remove(batch_);
  batch_ = {};
}

void DropSearch::try_one_by_one() {
  const std::size_t trials = std::min(candidates_.size(), kTrials);
  sort_best(0, trials);
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < trials; ++i) batches.push_back(batch_of(candidates_[i]));
  const double worst = excess_.worst();
  const double overhead = evaluation_.overhead();
  const double excess = Excess::weigh(evaluation_.memory(), budget_, worst);
  double best_score = kInfinite;
  std::size_t best = trials_++ % trials;  // none may help by itself
  for (std::size_t i = 0; i < trials; ++i) {
    add(batches[i]);
    const bool is_possible = evaluate(Detail::kMemory);
    const double taken = excess - Excess::weigh(evaluation_.memory(), budget_, worst);
    const double score = (evaluation_.overhead() - overhead + kLeastCost) / taken;
    if (is_possible && taken > 1e-12 && score < best_score) {
      best_score = score;
      best = i;
    }
    remove(batches[i]);
  }
  add(batches[best]);
}

StepFacts::Version DropSearch::kept_by(const Candidate& candidate) const {
  return candidate.group == StepFacts::kNone ? StepFacts::kNone : groups_[candidate.group].kept;
}

DropSearch::Batch DropSearch::batch_of(const Candidate& candidate) const {
  Batch batch;
  for_each_gap(candidate, [&](const Gap& gap) { batch.drops.push_back({gap.version, gap.from}); });
  const StepFacts::Version kept = kept_by(candidate);
  if (kept != StepFacts::kNone && !drops_.keeps(kept)) batch.kept.push_back(kept);
  return batch;
}

void DropSearch::add(const Batch& batch) {
  for (const Drop& drop : batch.drops) drops_.add(drop);
  for (const StepFacts::Version version : batch.kept) drops_.set_kept(version, true);
}

void DropSearch::remove(const Batch& batch) {
  for (const Drop& drop : batch.drops) drops_.remove(drop);
  for (const StepFacts::Version version : batch.kept) drops_.set_kept(version, false);
}

}  // namespace coop
