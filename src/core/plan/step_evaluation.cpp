#include "core/plan/step_evaluation.hpp"

#include <algorithm>

namespace coop {
namespace {

// Runs again for each call of the program, on average: more is not a plan.
constexpr std::size_t kMostRunsAgain = 16;
// Versions that the estimate of a gap's cost looks at.
constexpr int kMostSteps = 1000;

}  // namespace

StepEvaluation::StepEvaluation(const StepFacts& facts)
    : besides(facts.calls + 1),
      facts_(facts),
      state_(facts.versions.size()),
      state_of_call_(facts.calls + 1) {}

bool StepEvaluation::run(const Drops& drops, Detail detail) {
  drops_ = &drops;
  detail_ = detail;
  begin();
  for (Call call = 0; call <= facts_.calls; ++call) {
    let_sources_arrive(call);
    if (!bring_back_inputs(call)) return false;
    run_call(call);
  }
  for (Version version = 0; version < state_.size(); ++version) {
    if (state_[version].is_there) close_block(version);
  }
  return true;
}

void StepEvaluation::begin() {
  std::fill(state_.begin(), state_.end(), State{});
  std::fill(state_of_call_.begin(), state_of_call_.end(), StateOfCall{});
  walks_ = 0;
  runs_again_ = 0;
  held_ = 0;
  overhead_ = 0;
  most_ = 0;
  memory_.clear();
  calls_.clear();
  gaps_.clear();
  blocks_.clear();
  along_.clear();
}

// --- the program ---

void StepEvaluation::let_sources_arrive(Call call) {
  for (const Version version : facts_.arrives[call]) {
    state_[version].is_there = true;
    held_ += facts_.versions[version].bytes;
    open_block(version, static_cast<Moment>(memory_.size()), call, StepFacts::kNone);
  }
  if (facts_.gone_before[call].empty()) return;
  const Moment moment = add_moment(call, 0);
  for (const Version version : facts_.gone_before[call]) {
    if (is_gone(version, call)) end_life(version, call, moment + 1);
  }
}

// False: too much runs again.
bool StepEvaluation::bring_back_inputs(Call call) {
  bool are_all_there = true;
  for (const Lists<Version>* list : {&facts_.inputs, &facts_.protects}) {
    for (const Version version : (*list)[call]) {
      state_[version].needed_by = call;
      are_all_there = are_all_there && state_[version].is_there;
    }
  }
  for (const Version version : facts_.early[call]) {
    if (!comes_early(version, call)) continue;
    state_[version].needed_by = call;
    are_all_there = false;
  }
  if (are_all_there) return true;
  if (!plan_missing(call)) return false;
  bring_along(call);
  runs_again_ += agenda_.size();
  if (runs_again_ > kMostRunsAgain * (facts_.calls + 1)) return false;
  std::sort(agenda_.begin(), agenda_.end());
  for (const Call again : agenda_) run_again(again, call);
  return true;
}

void StepEvaluation::run_call(Call call) {
  for (const Version made : facts_.makes[call]) held_ += facts_.versions[made].bytes;
  for (const StepFacts::Change& change : facts_.overwrites[call]) {
    if (!state_[change.before].is_there) held_ += facts_.versions[change.after].bytes;
  }
  const Moment moment = add_moment(call, facts_.workspace[call]);
  for (const Lists<Version>* list : {&facts_.inputs, &facts_.protects}) {
    for (const Version version : (*list)[call]) touch(version, call, moment);
  }
  for (const Version version : facts_.early[call]) {
    if (state_[version].is_there) touch(version, call, moment);
  }
  const auto arrive = [&](Version version) {
    State& state = state_[version];
    state.is_there = true;
    state.touched_in = call;
    state.touched_at = moment;
  };
  const auto take_over = [&](const StepFacts::Change& change) {
    State& before = state_[change.before];
    if (before.is_there) {
      state_[change.after].block = before.block;
      before.is_there = false;
    } else {
      open_block(change.after, moment, call, call);
    }
    arrive(change.after);
  };
  for (const StepFacts::Change& change : facts_.changes[call]) take_over(change);
  for (const StepFacts::Change& change : facts_.overwrites[call]) {
    note_last_gap(change.before, call, moment);
    take_over(change);
  }
  for (const Version made : facts_.makes[call]) {
    open_block(made, moment, call, call);
    arrive(made);
  }
  add_workspace(call, call, moment);
  for (const Lists<Version>* list : {&facts_.inputs, &facts_.early}) {
    for (const Version version : (*list)[call]) drop_if_planned(version, call);
  }
  if (call == facts_.calls) return;
  for (const Version made : facts_.outputs(call)) {
    drop_if_planned(made, call);
  }
  for (const Version version : facts_.gone_after[call]) {
    if (is_gone(version, call + 1)) end_life(version, call, moment + 1);
  }
}

// --- memory and gaps ---

Moment StepEvaluation::add_moment(Call call, Bytes workspace) {
  memory_.push_back(held_ + workspace + besides[call]);
  calls_.push_back(call);
  most_ = std::max(most_, memory_.back());
  return static_cast<Moment>(memory_.size() - 1);
}

void StepEvaluation::touch(Version version, Call call, Moment moment) {
  State& state = state_[version];
  const bool is_gap = facts_.is_droppable(version, state.touched_in) &&
                      moment > state.touched_at + 1 && state.touched_in < call;
  if (is_gap && detail_ != Detail::kMemory) {
    gaps_.push_back({.version = version,
                     .from = state.touched_in,
                     .until = call,
                     .after = state.touched_at,
                     .before = moment});
    if (detail_ == Detail::kGaps) estimate(gaps_.back());
  }
  state.touched_in = call;
  state.touched_at = moment;
}

void StepEvaluation::come_back(Version version, Call call, Moment moment) {
  State& state = state_[version];
  if (detail_ != Detail::kMemory) {
    gaps_.push_back({.version = version,
                     .from = state.touched_in,
                     .until = call,
                     .after = state.touched_at,
                     .before = moment,
                     .is_dropped = true});
  }
  state.is_there = true;
  state.touched_in = call;
  state.touched_at = moment;
}

void StepEvaluation::drop_if_planned(Version version, Call call) {
  const State& state = state_[version];
  if (!state.is_there || !drops_->has(version, call)) return;
  // What is there and is made a second time, beside something that is needed, is not touched.
  if (state.touched_in == call && facts_.is_droppable(version, call)) leave(version);
}

// Nobody needs its contents any more; from moment `end` on the memory is gone or somebody else's.
void StepEvaluation::note_last_gap(Version version, Call call, Moment end) {
  const State& state = state_[version];
  if (detail_ == Detail::kMemory || !facts_.is_droppable(version, state.touched_in)) return;
  if (!state.is_there || end > state.touched_at + 1) {
    gaps_.push_back({.version = version,
                     .from = state.touched_in,
                     .until = call,
                     .after = state.touched_at,
                     .before = end,
                     .is_dropped = !state.is_there,
                     .is_last = true});
  }
}

void StepEvaluation::end_life(Version version, Call call, Moment end) {
  note_last_gap(version, call, end);
  if (state_[version].is_there) leave(version);
}

void StepEvaluation::leave(Version version) {
  state_[version].is_there = false;
  held_ -= facts_.versions[version].bytes;
  close_block(version);
}

// See Note [Gaps].
void StepEvaluation::estimate(Gap& gap) {
  const Call call = gap.until;
  const Call producer = facts_.versions[gap.version].producer;
  for (const Version input : facts_.inputs[producer]) {
    const bool is_past_and_missing = !state_[input].is_there && !is_held(input, call);
    if (is_past_and_missing && facts_.readers[input].size() > 1) {
      gap.parent = input;
      break;
    }
  }
  const double limit = price_limit * static_cast<double>(facts_.versions[gap.version].bytes);
  ++walks_;
  stack_.assign(1, gap.version);
  int left = kMostSteps;
  for (; !stack_.empty() && left > 0 && gap.cost <= limit; --left) {
    const Version version = stack_.back();
    stack_.pop_back();
    const Call maker = facts_.versions[version].producer;
    if (version != gap.version) {
      if (state_[version].is_there || maker == StepFacts::kNone) continue;
      // It was there for a moment within the gap, and then the gap's version would have come along.
      const StateOfCall& made = state_of_call_[maker];
      const bool was_there = made.ran_for != StepFacts::kNone && made.ran_for > gap.from;
      if (was_there && !is_held(version, call)) continue;
    }
    if (state_of_call_[maker].seen_by_walk == walks_) continue;
    state_of_call_[maker].seen_by_walk = walks_;
    gap.cost += facts_.cost[maker];
    const bool is_for_later = version != gap.version && is_held(version, call + 1);
    if (!is_for_later) gap.extra_cost += facts_.cost[maker];
    for (const Version input : facts_.inputs[maker]) stack_.push_back(input);
  }
  gap.is_too_dear = left == 0 || gap.cost > limit;
  find_smaller(gap);
}

// Goes back from call to call as long as just one version is missing.
void StepEvaluation::find_smaller(Gap& gap) const {
  constexpr int kMostCalls = 4;
  Bytes least = facts_.versions[gap.version].bytes;
  double cost = 0;
  Version version = gap.version;
  for (int left = kMostCalls; left > 0; --left) {
    const Call maker = facts_.versions[version].producer;
    cost += facts_.cost[maker];
    Version missing = StepFacts::kNone;
    for (const Version input : facts_.inputs[maker]) {
      if (state_[input].is_there) continue;
      if (missing != StepFacts::kNone) return;
      missing = input;
    }
    if (missing == StepFacts::kNone || !facts_.is_keepable(missing)) return;
    if (is_held(missing, gap.until)) return;  // dropped itself
    if (facts_.versions[missing].bytes < least) {
      least = facts_.versions[missing].bytes;
      gap.smaller = missing;
      gap.cost_if_kept = cost;
    }
    version = missing;
  }
}

// --- blocks ---

void StepEvaluation::open_block(Version version, Moment moment, Call call, Call by) {
  if (detail_ != Detail::kBlocks) return;
  state_[version].block = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back({facts_.versions[version].bytes, moment, moment, call, by, version});
}

void StepEvaluation::close_block(Version version) {
  if (detail_ != Detail::kBlocks) return;
  PlannedBlock& block = blocks_[state_[version].block];
  block.until = std::max(static_cast<Moment>(memory_.size() - 1), block.from);
}

void StepEvaluation::add_workspace(Call by, Call call, Moment moment) {
  if (detail_ != Detail::kBlocks || facts_.workspace[by] == 0) return;
  blocks_.push_back({facts_.workspace[by], moment, moment, call, by, StepFacts::kNone});
}

}  // namespace coop
