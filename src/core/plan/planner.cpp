#include "core/plan/planner.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/block_layout.hpp"
#include "core/plan/drop_search.hpp"
#include "core/plan/least_memory.hpp"
#include "core/plan/slab_room.hpp"
#include "core/plan/step_evaluation.hpp"
#include "core/plan/step_facts.hpp"

// Note [Drops and addresses]
//
// Drops are chosen without addresses, for a budget; then the blocks are laid out. If they do not fit, less
// memory is left to the drops at the calls where blocks stuck out, drops are added, and all is laid out anew. Where there is
// more at a moment than any layout has room for, none is tried: what is too much is known.
//
// Drops that have been improved leave nothing over, and then addresses may cost more than the improvement brought. Where
// they cost much, the drops as they were found are laid out as well, and the cheaper plan is taken. So it is where
// something is kept: another plan does without (Note [Keeping instead]).

namespace coop {
namespace {

using Call = StepFacts::Call;
using Detail = StepEvaluation::Detail;

constexpr int kMostLayouts = 16;
constexpr int kPatientLayouts = 4;
// Parts of the budget: what nobody gets; what is taken from the drops in a round at the most, and, where little did
// not help, at the least; and what is taken in addition.
constexpr Bytes kMargin = 5000;
constexpr Bytes kMostAtOnce = 100;
constexpr Bytes kLeastAtOnce = 200;
constexpr Bytes kSomeMore = 1000;
constexpr double kDearAddresses = 1.02;

class Planner {
 public:
  enum class Drops : std::uint8_t { kImproved, kAsFound };

  Planner(const StepRecord& step, const PlanOptions& options, Drops drops,
          DropSearch::Keeping keeping)
      : step_(step),
        options_(options),
        drops_(drops),
        budget_(options.budget / kBlockAlignment * kBlockAlignment),
        facts_(step, options.small_limit, options.most_depth),
        search_(facts_, budget_, keeping),
        evaluation_(search_.evaluation()),
        layout_(options.held, budget_) {}

  std::optional<StepPlan> plan() {
    if (least_memory(facts_) > budget_) return std::nullopt;
    if (!evaluation_.run(search_.drops(), Detail::kBlocks)) return std::nullopt;
    sort_blocks();
    count_what_is_not_planned();
    int layouts = 0;
    for (int round = 0; round < 2 * kMostLayouts && layouts < kMostLayouts; ++round) {
      if (!search_.fit()) break;
      if (drops_ == Drops::kImproved) search_.improve();
      if (!evaluation_.run(search_.drops(), Detail::kBlocks)) break;
      if (round == 0) overhead_without_addresses_ = evaluation_.overhead();
      sort_blocks();
      if (placed_.size() > BlockLayout::kMostBlocks) break;
      if (take_what_no_layout_has_room_for()) continue;
      const Layout layout = layout_.lay_out(placed_, room_for_small());
      if (layout.height <= budget_) return to_plan(layout);
      take_from_drops(layout, layouts < kPatientLayouts ? 0 : part_of_budget(kLeastAtOnce));
      ++layouts;
    }
    return std::nullopt;
  }

  [[nodiscard]] double overhead_without_addresses() const { return overhead_without_addresses_; }
  [[nodiscard]] bool keeps_some() const { return search_.drops().keeps_some(); }

 private:
  // --- blocks ---

  // What lies there before the step begins has its place.
  [[nodiscard]] bool is_there_before(const PlannedBlock& block) const {
    return block.by == StepFacts::kNone && facts_.versions[block.version].is_there_before;
  }

  // Into those that are to be placed and those that are small.
  void sort_blocks() {
    placed_.clear();
    placed_blocks_.clear();
    small_.clear();
    const std::vector<PlannedBlock>& blocks = evaluation_.blocks();
    std::map<Bytes, Moment> goes;  // by size: when the last of those that are there before does
    for (const PlannedBlock& block : blocks) {
      if (!is_there_before(block) || block.until == last_moment()) continue;
      goes[block.bytes] = std::max(goes[block.bytes], block.until + 1);
    }
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
      const PlannedBlock& block = blocks[i];
      if (is_there_before(block)) continue;
      if (block.bytes <= options_.small_limit) {
        small_.push_back(block);
      } else {
        placed_blocks_.push_back(i);
        placed_.push_back({block.bytes, block.from, block.until});
        // See Note [From step to step].
        const auto early = block.until == last_moment() ? goes.find(block.bytes) : goes.end();
        if (early != goes.end()) placed_.back().early_end = early->second;
      }
    }
  }
  [[nodiscard]] Moment last_moment() const {
    return static_cast<Moment>(evaluation_.memory().size() - 1);
  }

  [[nodiscard]] Bytes room_for_small() const {
    return slab_room(small_, options_.small_limit, budget_, evaluation_.memory().size());
  }

  // --- memory ---

  // In whole grains: of a budget of a few grains nothing is left aside.
  [[nodiscard]] Bytes part_of_budget(Bytes part) const {
    return budget_ / part / kBlockAlignment * kBlockAlignment;
  }

  // What takes more than its bytes: small blocks, which lie in slabs, and what is held.
  void count_what_is_not_planned() {
    const Bytes room = room_for_small();
    Bytes held = 0;
    for (const ByteRange& range : options_.held) held += range.end - range.begin;
    const Bytes more_held = held - std::min(held, facts_.there_before);
    std::vector<Bytes> comes(facts_.calls + 2);
    std::vector<Bytes> goes(facts_.calls + 2);
    for (const PlannedBlock& block : small_) {
      comes[evaluation_.calls()[block.from]] += block.bytes;
      goes[evaluation_.calls()[block.until] + 1] += block.bytes;
    }
    Bytes small = 0;
    for (Call call = 0; call <= facts_.calls; ++call) {
      small = small + comes[call] - goes[call];
      const Bytes wasted = room - std::min(room, small);
      evaluation_.besides[call] = part_of_budget(kMargin) + more_held + wasted;
    }
  }

  // Drops are chosen for each call alone. Between steps two blocks may have to have a place where only one is there at a
  // time: a batch, and the next, which comes before it goes.
  bool take_what_no_layout_has_room_for() {
    std::vector<Bytes> beyond(evaluation_.besides.size());
    const std::span<const Bytes> least = layout_.least(placed_, room_for_small());
    for (Moment moment = 0; moment < least.size(); ++moment) {
      Bytes& most = beyond[evaluation_.calls()[std::min(moment, last_moment())]];
      most = std::max(most, least[moment] - std::min(least[moment], budget_));
    }
    bool is_any = false;
    for (Call call = 0; call < beyond.size(); ++call) {
      if (beyond[call] == 0) continue;
      is_any = true;
      evaluation_.besides[call] += beyond[call];
    }
    return is_any;
  }

  struct StickingOut {
    Bytes bytes = 0;
    Call from = 0;
    Call until = 0;
  };

  // Where blocks stuck out, that much less is left to the drops.
  void take_from_drops(const Layout& layout, Bytes least) {
    const Bytes most = std::max(part_of_budget(kMostAtOnce), kBlockAlignment);
    std::vector<StickingOut> all;
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      const Bytes end = layout.offsets[i] + placed_[i].bytes;
      if (end <= budget_) continue;
      all.push_back({.bytes = std::clamp(end - budget_, least, most) + part_of_budget(kSomeMore),
                     .from = evaluation_.calls()[placed_[i].from],
                     .until = evaluation_.calls()[placed_[i].until]});
    }
    // The most at each call: the largest first, and each call is met once.
    std::sort(all.begin(), all.end(),
              [](const StickingOut& a, const StickingOut& b) { return a.bytes > b.bytes; });
    std::vector<Call> next(facts_.calls +
                           2);  // itself if it was not met, or on the way to one that was not
    std::iota(next.begin(), next.end(), Call{0});
    const auto next_of = [&](Call call) {
      while (next[call] != call) call = next[call] = next[next[call]];
      return call;
    };
    for (const StickingOut& one : all) {
      for (Call call = next_of(one.from); call <= one.until; call = next_of(call)) {
        evaluation_.besides[call] += one.bytes;
        next[call] = call + 1;
      }
    }
  }

  // --- the plan ---

  [[nodiscard]] StepPlan to_plan(const Layout& layout) const {
    StepPlan plan;
    plan.overhead_ns = evaluation_.overhead();
    plan.first_version = facts_.first_version;
    plan.goes_after.resize(facts_.calls + 1);
    plan.comes_along.resize(facts_.calls + 1);
    plan.absences.resize(facts_.first_version.back());
    plan.is_kept.resize(facts_.first_version.back());
    for (StepFacts::Version version = 0; version < plan.is_kept.size(); ++version) {
      plan.is_kept[version] = search_.drops().keeps(version);
    }
    for (const Gap& gap : evaluation_.gaps()) {
      if (!gap.is_dropped) continue;
      // What nobody needs any more is absent until it would have gone anyway.
      const Call until = gap.is_last ? evaluation_.held_until(gap.version) : gap.until;
      plan.absences[gap.version].push_back({gap.from, until});
      plan.goes_after[gap.from].push_back(gap.version);
    }
    for (const ComesAlong& along : evaluation_.along()) {
      plan.comes_along[along.call].push_back(along.version);
    }
    add_places(layout, plan);
    return plan;
  }

  void add_places(const Layout& layout, StepPlan& plan) const {
    const auto block_of = [&](std::uint32_t i) -> const PlannedBlock& {
      return evaluation_.blocks()[placed_blocks_[i]];
    };
    const auto key = [&](std::uint32_t i) {  // a workspace comes last
      return std::tuple(block_of(i).call, block_of(i).by, block_of(i).version);
    };
    std::vector<std::uint32_t> order(placed_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    plan.allocations.resize(facts_.calls + 1);
    std::vector<Block> blocks;  // of one run of a call
    for (std::size_t i = 0; i < order.size(); ++i) {
      const PlannedBlock& block = block_of(order[i]);
      blocks.push_back({block.version, bytes_of(block), layout.offsets[order[i]]});
      const PlannedBlock* next = i + 1 < order.size() ? &block_of(order[i + 1]) : nullptr;
      if (next != nullptr && next->call == block.call && next->by == block.by) continue;
      plan.allocations[block.call].push_back({block.by, places_of(block.by, blocks)});
      blocks.clear();
    }
  }

  struct Block {
    StepFacts::Version version = 0;  // none: the workspace
    Bytes bytes = 0;
    Bytes offset = 0;
  };
  [[nodiscard]] Bytes bytes_of(const PlannedBlock& block) const {
    return block.version == StepFacts::kNone
               ? step_.calls[block.by].workspace
               : step_.storages[facts_.versions[block.version].storage].bytes;
  }

  // In the order in which they are allocated, see Note [Memory within a call] in the engine.
  [[nodiscard]] std::vector<StepPlan::Place> places_of(Call by,
                                                       std::span<const Block> blocks) const {
    std::vector<StepPlan::Place> places;
    const bool has_pieces = by != StepFacts::kNone && !step_.pieces_of(by).empty();
    const StepFacts::Version first_made =
        has_pieces ? facts_.first_version[by] + static_cast<Call>(step_.writes_of(by).size())
                   : StepFacts::kNone;
    for (const Block& block : blocks) {  // what is written has its memory before the call runs
      if (!has_pieces || block.version < first_made) places.push_back({block.bytes, block.offset});
    }
    if (!has_pieces) return places;
    for (const StepRecord::Piece& piece : step_.pieces_of(by)) {
      const std::uint32_t within = piece.output != StepRecord::kNone ? piece.output : piece.within;
      const StepFacts::Version version =
          within == StepRecord::kNone ? StepFacts::kNone : first_made + within;
      const auto found = std::find_if(blocks.begin(), blocks.end(),
                                      [&](const Block& block) { return block.version == version; });
      if (found != blocks.end()) places.push_back({piece.bytes, found->offset + piece.offset});
    }
    return places;
  }

  const StepRecord& step_;
  const PlanOptions& options_;
  Drops drops_;
  Bytes budget_;
  double overhead_without_addresses_ = 0;
  StepFacts facts_;
  DropSearch search_;
  StepEvaluation& evaluation_;  // of the search
  BlockLayout layout_;
  // Of the last evaluation.
  std::vector<BlockLife> placed_;
  std::vector<std::uint32_t> placed_blocks_;  // which these are
  std::vector<PlannedBlock> small_;
};

using Plan = std::optional<StepPlan>;

Plan cheaper(Plan one, Plan other) {
  return other && (!one || other->overhead_ns < one->overhead_ns) ? std::move(other)
                                                                  : std::move(one);
}

struct Attempt {
  Plan plan;
  bool has_kept = false;
};

Attempt plan_with(const StepRecord& step, const PlanOptions& options, DropSearch::Keeping keeping) {
  Planner planner(step, options, Planner::Drops::kImproved, keeping);
  Attempt found{.plan = planner.plan(), .has_kept = planner.keeps_some()};
  const double least = planner.overhead_without_addresses();
  const bool has_drops = least > 0;  // else there is nothing to improve, or no way to fit
  const bool is_good = found.plan && found.plan->overhead_ns <= kDearAddresses * least;
  if (!has_drops || is_good) return found;
  Planner other(step, options, Planner::Drops::kAsFound, keeping);
  found.plan = cheaper(std::move(found.plan), other.plan());
  found.has_kept = found.has_kept || other.keeps_some();
  return found;
}

}  // namespace

std::optional<StepPlan> plan_step(const StepRecord& step, const PlanOptions& options) {
  Attempt found = plan_with(step, options, DropSearch::Keeping::kAllowed);
  if (!found.has_kept) return std::move(found.plan);
  return cheaper(std::move(found.plan),
                 plan_with(step, options, DropSearch::Keeping::kBarred).plan);
}

}  // namespace coop
