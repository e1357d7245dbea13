// The calls that run again for a call of the program.
#include <algorithm>

#include "core/plan/step_evaluation.hpp"

namespace coop {
namespace {

// Readers of a past version that are asked whether they come along.
constexpr std::size_t kMostReaders = 64;

}  // namespace

// False if something is missing that cannot be made.
bool StepEvaluation::plan_missing(Call call) {
  agenda_.clear();
  stack_.clear();
  for (const Lists<Version>* list : {&facts_.inputs, &facts_.protects}) {
    for (const Version version : (*list)[call]) stack_.push_back(version);
  }
  for (const Version version : facts_.early[call]) {
    if (!comes_early(version, call)) continue;
    stack_.push_back(version);
    if (detail_ == Detail::kBlocks) along_.push_back({call, version});
  }
  while (!stack_.empty()) {
    const Version version = stack_.back();
    stack_.pop_back();
    if (state_[version].is_there) continue;
    const Call producer = facts_.versions[version].producer;
    if (producer == StepFacts::kNone) return false;
    if (state_of_call_[producer].planned_for == call) continue;
    state_of_call_[producer].planned_for = call;
    agenda_.push_back(producer);
    for (const Version input : facts_.inputs[producer]) {
      ++state_[input].wanted;
      stack_.push_back(input);
    }
  }
  return true;
}

// The agenda grows while it is gone through: what comes along may be past itself.
void StepEvaluation::bring_along(Call call) {
  std::size_t next = 0;
  while (next < agenda_.size()) {
    const Call again = agenda_[next++];
    for (const Version made : facts_.outputs(again)) {
      const bool is_past = !is_held(made, call);
      if (is_past && facts_.versions[made].producer != StepFacts::kNone) offer_readers(made, call);
    }
  }
}

void StepEvaluation::offer_readers(Version past, Call call) {
  std::size_t left = kMostReaders;
  for (const Call reader : facts_.readers[past]) {
    if (reader >= call || left-- == 0) return;
    if (state_of_call_[reader].planned_for == call) continue;
    for (const Version made : facts_.outputs(reader)) {
      if (!is_wanted_along(made, reader, call)) continue;
      state_of_call_[reader].planned_for = call;
      agenda_.push_back(reader);
      for (const Version input : facts_.inputs[reader]) ++state_[input].wanted;
      if (detail_ == Detail::kBlocks) along_.push_back({call, made});
      break;
    }
  }
}

bool StepEvaluation::is_wanted_along(Version version, Call producer, Call call) const {
  if (state_[version].is_there || facts_.versions[version].producer != producer) return false;
  if (!is_held(version, call) || drops_->has(version, call)) return false;
  const auto uses = facts_.uses[version];
  if (uses.empty() || uses.back() < call) return false;
  const auto inputs = facts_.inputs[producer];
  return std::all_of(inputs.begin(), inputs.end(), [&](Version input) {
    const Call maker = facts_.versions[input].producer;
    return state_[input].is_there ||
           (maker != StepFacts::kNone && state_of_call_[maker].planned_for == call);
  });
}

void StepEvaluation::run_again(Call again, Call call) {
  state_of_call_[again].ran_for = call;
  overhead_ += facts_.cost[again];
  state_of_call_[call].cost += facts_.cost[again];
  for (const Version made : facts_.makes[again]) held_ += facts_.versions[made].bytes;
  for (const StepFacts::Change& change : facts_.overwrites[again]) {
    held_ += facts_.versions[change.after].bytes;
  }
  const Moment moment = add_moment(call, facts_.workspace[again]);
  for (const Version input : facts_.inputs[again]) {
    if (state_[input].is_there && is_held(input, call)) touch(input, call, moment);
  }
  add_workspace(again, call, moment);
  for (const StepFacts::Change& change : facts_.changes[again]) {
    state_[change.before].is_there = false;
    if (state_[change.after].is_there) {  // what is made twice is of no use
      close_block(change.before);
      held_ -= facts_.versions[change.before].bytes;
    } else {
      state_[change.after].block = state_[change.before].block;
      deliver(change.after, call, moment);
    }
  }
  const auto deliver_new = [&](Version version) {
    if (state_[version].is_there) {
      held_ -= facts_.versions[version].bytes;
      if (detail_ == Detail::kBlocks) {
        blocks_.push_back({facts_.versions[version].bytes, moment, moment, call, again, version});
      }
    } else {
      open_block(version, moment, call, again);
      deliver(version, call, moment);
    }
  };
  for (const StepFacts::Change& change : facts_.overwrites[again]) deliver_new(change.after);
  for (const Version made : facts_.makes[again]) deliver_new(made);

  for (const Version input : facts_.inputs[again]) {
    if (--state_[input].wanted == 0) done_with(input, call);
  }
  for (const Version made : facts_.outputs(again)) {
    if (state_[made].wanted == 0) done_with(made, call);
  }
}

// Its memory is there; who wants it?
void StepEvaluation::deliver(Version version, Call call, Moment moment) {
  const bool is_droppable = facts_.versions[version].producer != StepFacts::kNone;
  if (is_droppable && is_held(version, call)) {
    come_back(version, call, moment);
  } else {
    state_[version].is_there = true;
    if (state_[version].wanted == 0) leave(version);
  }
}

// Nobody else reads it among what runs again.
void StepEvaluation::done_with(Version version, Call call) {
  if (!state_[version].is_there || state_[version].needed_by == call) return;
  if (is_held(version, call)) {
    drop_if_planned(version, call);
  } else if (facts_.is_droppable(version, call)) {
    leave(version);
  }
}

}  // namespace coop
