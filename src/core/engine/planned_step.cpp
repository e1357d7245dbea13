// What the forecast is told, and how its plan is followed.
#include <algorithm>
#include <thread>
#include <utility>

#include "core/engine/engine.hpp"

namespace coop {

// Until something must be evicted, nobody asks what comes next.
void Engine::begin_forecast() noexcept {
  if (!policy_.traits().looks_ahead || pool_.ignores_addresses()) return;
  try {
    forecast_.emplace(ForecastOptions{.budget = pool_.bytes(),
                                      .small_limit = pool_.small_limit(),
                                      .most_depth = options_.most_depth,
                                      .calls_before = stats_.calls,
                                      .storages_before = storages_added_});
  } catch (...) {
    forecast_.reset();  // there will be none; the operator must not fail for it
  }
}

// --- telling ---

StorageUse Engine::use_of(StorageId id, bool reads_old) const {
  const Storage& storage = graph_.storages()[id];
  return use_of(storage, graph_.values()[storage.current], reads_old);
}

// Sizes are of blocks.
StorageUse Engine::use_of(const Storage& storage, const Value& value, bool reads_old) {
  return {.storage = storage.serial,
          .bytes = to_bytes(to_grains(value.bytes)),
          .written_at = storage.written_at,
          .is_from_outside = storage.is_from_outside,
          .is_source = value.is_source(),
          .is_source_forever = storage.is_source_forever,
          .reads_old = reads_old};
}

void Engine::tell_forecast_of_begin(std::span<const StorageId> reads,
                                    std::span<const Write> writes) {
  if (forecast_->wants_plan()) plan_step_ahead();
  // Nobody compares it with anything unless a plan is followed.
  if (!forecast_ || forecast_->plan() == nullptr) return;
  uses_.clear();
  for (const StorageId id : reads) uses_.push_back(use_of(id));
  for (const Write& write : writes) uses_.push_back(use_of(write.storage, write.reads_old));
  const std::span<const StorageUse> uses(uses_);
  forecast_->call_begins(uses.first(reads.size()), uses.subspan(reads.size()));
}

// May throw, and has changed nothing then.
void Engine::prepare_forecast_of_end(const RunningCall& call, const CallResult& result) {
  uses_.clear();
  uses_.reserve(call.inputs.size() + call.writes.size() + result.outputs.size());
}

void Engine::tell_forecast_of_end(const RunningCall& call, const CallResult& result,
                                  CallId recorded, std::span<const StorageId> made) noexcept {
  std::size_t reads = 0;
  for (const Graph::Input& input : call.inputs) {
    if (input.is_mutated) continue;
    const Value& value = graph_.values()[input.value];
    const bool is_there = graph_.storages().contains(value.storage);
    uses_.push_back(is_there ? use_of(graph_.storages()[value.storage], value, true)
                             : StorageUse{});
    ++reads;
  }
  for (const RunningCall::Written& write : call.writes) {
    const Value& before = graph_.values()[write.before];
    uses_.push_back(use_of(graph_.storages()[write.storage], before, write.reads_old));
  }
  for (const StorageId id : made) uses_.push_back(use_of(id));
  for (std::uint32_t i = 0; i < result.outputs.size(); ++i) {
    call_memory_.note_output(result.outputs[i].block, i);
  }
  const Bytes workspace = call_memory_.lay_out();
  const std::span<const StorageUse> uses(uses_);
  const auto step_call =
      forecast_->call_ends({.reads = uses.first(reads),
                            .writes = uses.subspan(reads, call.writes.size()),
                            .makes = uses.subspan(reads + call.writes.size()),
                            .cost = result.cost,
                            .workspace = workspace,
                            .pieces = call_memory_.pieces(),
                            .is_replayable = static_cast<bool>(recorded),
                            .recomputed = stats_.replay_ns + evicting_.stats().moving_ns});
  call_memory_.begin();  // a call that this one ran inside of goes on
  if (step_call) ++stats_.planned_calls;
  if (step_call && graph_.calls().contains(recorded)) bind_to_plan(recorded, *step_call);
}

// --- following ---

// A step begins. What is in the pool now stays there, as far as one can see.
void Engine::plan_step_ahead() noexcept {
  try {
    pool_.trim();  // before anything moves: an empty slab would stand in the way of all behind it
    if (!has_moved_for_plan_) evicting_.move_all_left();
    has_moved_for_plan_ = true;
    std::vector<ByteRange> held;
    for (const Chunk* chunk : pool_.order().chunks()) {
      for (int slot = 0; slot < chunk->count; ++slot) {
        const Extent extent = chunk->extent(slot);
        if (!chunk->is_hole(slot)) held.push_back({to_bytes(extent.begin), to_bytes(extent.end)});
      }
    }
    forecast_->make_plan(held);
    ++stats_.plans;
    const StepPlan* plan = forecast_->plan();
    bound_.assign(plan == nullptr ? 0 : plan->absences.size(), ValueId{});
  } catch (...) {
    forecast_.reset();  // the operator must not fail for it
  }
}

// The Call's outputs are the versions that the plan speaks of.
void Engine::bind_to_plan(CallId id, std::uint32_t step_call) noexcept {
  if (std::exchange(bound_round_, forecast_->round()) != forecast_->round()) {
    std::fill(bound_.begin(), bound_.end(), ValueId{});
  }
  Call& call = graph_.calls()[id];
  if (call.outputs != forecast_->plan()->outputs(step_call)) return;  // only its hash is the same
  call.round = bound_round_;
  call.step_call = step_call;
  graph_.for_each_output(call, [&](ValueId output, const Value& value) {
    bound_[forecast_->plan()->version(step_call, value.output)] = output;
  });
}

// After an operator has ended: what the plan does without for a while goes at once, so that the place it had
// is free for what the plan has put there. The operator has been recorded, so nothing may fail; to drop a
// block that may be dropped takes no memory.
void Engine::follow_plan() noexcept {
  if (const StepPlan* plan = forecast_->plan()) {
    for (const StepPlan::Version version : plan->goes_after[forecast_->now()]) {
      if (graph_.values().contains(bound_[version])) drop_if_planned(bound_[version]);
    }
  }
  forecast_->call_is_over();
}

// The version that the plan, which is followed, speaks of.
std::optional<StepPlan::Version> Engine::planned_version(const Value& value) const noexcept {
  const StepPlan* plan = forecast_ ? forecast_->plan() : nullptr;
  if (plan == nullptr || value.is_source()) return std::nullopt;
  const Call& call = graph_.calls()[value.producer];
  if (call.round != forecast_->round()) return std::nullopt;
  return plan->version(call.step_call, value.output);
}

bool Engine::is_planned_absent(const Value& value) const noexcept {
  const auto version = planned_version(value);
  return version && forecast_->plan()->is_absent(*version, forecast_->now());
}

// When it is released: see Note [Kept versions] in the planner. What has been written unseen is made again rightly from
// what it was made from, and would go on being wrong.
bool Engine::is_worth_keeping(StorageId id) const noexcept {
  const Storage& storage = graph_.storages()[id];
  const Value& value = graph_.values()[storage.current];
  const auto version = planned_version(value);
  if (!version || !forecast_->plan()->is_kept[*version]) return false;
  return !value.is_resident() || world_.is_as_made(storage.token);
}

void Engine::drop_if_planned(ValueId id) {
  const Value& value = graph_.values()[id];
  if (!value.is_resident() || value.wanted > 0 || value.is_target || !is_planned_absent(value)) {
    return;
  }
  const BlockInfo block = pool_.info(value.block);
  if (block.pins > 0 || block.tenure != Tenure::kEvictable) return;
  if (!keeps_some({&value.block, 1})) evicting_.evict(value.block);
}

// Something is to come back though the operator may need nothing (Note [Coming back early] in the planner). For an operator
// that begins: elsewhere, what is there must be had without a replay. Another thread may be replaying: this one has not
// waited for that, and does without.
bool Engine::has_planned_alone() const {
  return is_as_planned() && replaying_ == std::thread::id() && !planned_along().empty();
}

// What comes back with what the operator needs.
std::vector<ValueId> Engine::planned_along() const {
  std::vector<ValueId> along;
  const StepPlan* plan = forecast_->plan();
  if (bound_round_ != forecast_->round()) return along;
  for (const StepPlan::Version version : plan->comes_along[forecast_->now()]) {
    const ValueId id = bound_[version];
    const bool is_missing = graph_.values().contains(id) && !graph_.values()[id].is_resident();
    if (is_missing && graph_.values()[id].is_current) along.push_back(id);
  }
  return along;
}

// --- places ---

// The operator runs now: for the first time, or anew.
void Engine::begin_memory_of_call() noexcept {
  if (forecast_) forecast_->resume_places();
  call_memory_.begin();
}

void Engine::expect_allocations_by(const Call& call) noexcept {
  if (!forecast_) return;
  if (forecast_->plan() != nullptr && call.round == forecast_->round()) {
    forecast_->allocations_by(call.step_call);
  } else {
    forecast_->no_places();
  }
}

std::optional<BlockId> Engine::take_planned(const Request& request) {
  if (!forecast_ || request.bytes <= pool_.small_limit()) return std::nullopt;
  const auto offset = forecast_->place_for(to_bytes(to_grains(request.bytes)));
  if (!offset) return std::nullopt;
  auto block = evicting_.allocate_at(request, *offset);
  // To the plan they are gone: in the step from which it was made the lineage had ended by then that they are kept for.
  if (!block && end_orphans_between(*offset, *offset + request.bytes)) {
    block = evicting_.allocate_at(request, *offset);
  }
  forecast_->note_placed(block.has_value());
  return block;
}

}  // namespace coop
