#pragma once

// Which versions are dropped when, so that the step fits.
//
// Note [The search for drops]
//
// Greedy: of all gaps, the one that costs least for what it takes from the excess (Note [Weighted excess]);
// until nothing exceeds the budget. What a gap costs changes with what else is dropped, so the step is
// evaluated anew, after each *batch* of drops: the best ones, until they cover a fifth of the excess or are
// twice as dear as the first.
//
//   - Groups. Versions made from the same past version cost little together and much alone: each alone
//     would have to pay for the past one. So they are offered together, the cheapest first, as many as make
//     the group cheapest for what it takes.
//   - Disappointments. Running again needs memory too, just where there is none. A batch that brings less than
//     half of what it promised is taken back; then the best few candidates are evaluated one by one, and
//     the best of them is taken.
//   - Prices. Costs of gaps are the dear part of an evaluation. Those of gaps that would cost many times what
//     has been paid per byte so far are not looked into, until nothing cheaper is left.
//
// Note [Keeping instead]
//
// What is made from something smaller that the program has let go of can be dropped at the price of the smaller one's
// memory (Note [Kept versions]): all that is made from one smaller version in this way is one candidate, which takes the
// difference. That looks cheap, and leaves less for what is dropped later: who has kept something may be better off
// without, which is the planner's to find out.
//
// Note [Second thoughts]
//
// Greedy choices regret nothing. So once the step fits, what is superfluous is taken back (Note [Superfluous drops]);
// and then each of the few dearest replays, by the bytes that are away for it and for how long, is done without: what
// comes back in it is barred, and the search goes on from the rest. That is given up as soon as it costs what the
// best did. Most of what there is to gain is among the very first.
//
// The number of evaluations is bounded, whatever the step; each takes time linear in the step.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/split_mix.hpp"
#include "core/plan/drops.hpp"
#include "core/plan/excess.hpp"
#include "core/plan/step_evaluation.hpp"
#include "core/plan/step_facts.hpp"
#include "core/plan/superfluous_drops.hpp"

namespace coop {

class DropSearch {
 public:
  enum class Keeping : std::uint8_t { kAllowed, kBarred };

  DropSearch(const StepFacts& facts, Bytes budget, Keeping keeping = Keeping::kAllowed);

  // Adds drops until the step fits, beside what evaluation().besides says. False: it cannot be done, or not so.
  [[nodiscard]] bool fit();
  // After that: what fits, too, and costs less, if something does.
  void improve();

  [[nodiscard]] const Drops& drops() const { return drops_; }
  [[nodiscard]] StepEvaluation& evaluation() { return evaluation_; }
  [[nodiscard]] std::size_t evaluations() const { return evaluations_; }

 private:
  struct Candidate {
    double score = 0;  // cost for what it takes
    double takes = 0;
    std::uint32_t gap = 0;
    std::uint32_t group = StepFacts::kNone;
  };
  struct Child {  // a gap whose version is made from a past one
    StepFacts::Version parent = 0;
    bool is_parent_kept = false;
    double own = 0;   // cost of the call that makes it
    double rest = 0;  // of all others
    double takes = 0;
    std::uint32_t gap = 0;
  };
  struct Group {  // of children_
    std::size_t begin = 0;
    std::size_t end = 0;
    StepFacts::Version kept = StepFacts::kNone;
  };
  struct Batch {
    std::vector<Drop> drops;
    std::vector<StepFacts::Version> kept;  // that were not before
    [[nodiscard]] bool is_empty() const { return drops.empty(); }
  };

  [[nodiscard]] bool evaluate(StepEvaluation::Detail detail);
  [[nodiscard]] bool is_disappointing();
  void take_back();
  void find_candidates();
  [[nodiscard]] bool must_look_further();
  void remember_price();

  struct Replay {      // what comes back for one call
    double price = 0;  // nanoseconds per byte and moment
    std::vector<StepFacts::Version> versions;
  };
  [[nodiscard]] std::vector<Replay> dearest_replays() const;
  [[nodiscard]] bool find_other_than(const Replay& replay);
  [[nodiscard]] bool find_other_than_some(SplitMix& random);
  void take_back_all_superfluous();
  void let_go_of_what_is_kept_in_vain();
  [[nodiscard]] bool take_back_superfluous();

  void find_groups();
  void add_group(std::size_t begin, std::size_t end);
  void add_saving(std::size_t begin, std::size_t end);
  [[nodiscard]] StepFacts::Version kept_by(const Candidate& candidate) const;
  [[nodiscard]] Batch batch_of(const Candidate& candidate) const;
  void add(const Batch& batch);
  void remove(const Batch& batch);
  void sort_best(std::size_t begin, std::size_t end);
  void take_batch();
  void take(const Candidate& candidate);
  void try_one_by_one();
  template <typename Visit>
  void for_each_gap(const Candidate& candidate, const Visit& visit) const;

  const StepFacts& facts_;
  Bytes budget_;
  Keeping keeping_;
  StepEvaluation evaluation_;
  Drops drops_;
  Excess excess_;
  SuperfluousDrops superfluous_;
  // Plans that are any good take 20 to 50 of them, some of the tightest several hundred.
  static constexpr std::size_t kMostEvaluations = 1000;
  std::size_t evaluations_ = 0;
  std::size_t most_evaluations_ = kMostEvaluations;

  std::vector<Candidate> candidates_;
  std::vector<Child> children_;
  std::vector<Group> groups_;
  double unseen_ = 0;  // the least score that gaps beyond the price limit may have

  // The last batch.
  Batch batch_;
  double promised_ = 0;  // part of the excess
  double batch_worst_ = 0;
  double batch_excess_ = 0;

  double paid_ = 0;  // the most, in nanoseconds per byte
  double price_limit_;
  double most_overhead_;         // beyond which it is given up
  std::vector<bool> is_barred_;  // by version: not to be dropped
  bool has_had_second_thoughts_ = false;
  std::size_t trials_ = 0;               // times that the best were tried one by one
  std::vector<std::uint32_t> taken_in_;  // by version: the last batch that it was in
  std::uint32_t batches_ = 0;
};

}  // namespace coop
