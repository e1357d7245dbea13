#include "core/engine/replay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/check.hpp"

namespace coop {

Replay::Replay(Engine& engine, std::span<const ValueId> targets, std::vector<BlockId>& pins)
    : engine_(engine),
      graph_(engine.graph_),
      targets_(targets),
      pins_(pins),
      number_(++engine.replays_begun_) {
  held_.reserve(targets.size());
  engine.is_replay_in_circles_ = false;
  engine.replay_cost_ = 0;
  pins_.reserve(pins_.size() + 2 * targets.size());
}

Replay::~Replay() {
  abandon_plan();
  for (const ValueId id : held_) {
    Value& value = graph_.values()[id];
    const bool was_target = std::exchange(value.is_target, false);
    if (was_target && value.is_resident() && !value.is_source()) engine_.publish(id);
  }
  for (const ValueId id : held_) graph_.unhold(id);
  engine_.replay_cost_ = std::numeric_limits<double>::infinity();
  if (!planned_.empty() && !engine_.keeps_regions()) engine_.have_costs_fallen_ = true;
  engine_.loss_.replay_is_over();
}

void Replay::hold(ValueId id) {
  held_.push_back(id);
  graph_.hold(id);
}

void Replay::run() {
  for (const ValueId id : targets_) {
    Value& value = graph_.values()[id];
    if (value.is_target) continue;
    hold(id);
    value.is_target = true;
    if (!value.is_resident()) continue;
    // Which may only be a Source until the operator that writes it ends, on another thread.
    if (value.is_source()) engine_.pin(value.block, pins_);
    keep(value);
  }
  try {
    for (const ValueId id : targets_) plan(id);
    bring_along();
    run_plan();
  } catch (const OutOfMemory&) {
    if (targets_.size() == 1 && !has_along_) throw;
    bring_back_one_by_one();
  }
  for (const ValueId id : targets_) {
    if (graph_.values()[id].is_resident()) engine_.pin(graph_.values()[id].block, pins_);
  }
  engine_.stats_.deepest_replay = std::max(engine_.stats_.deepest_replay, ran_);
}

void Replay::run_plan() {
  while (!agenda_.empty()) {
    const CallId call = agenda_.top().second;
    if (!is_needed(graph_.calls()[call])) {
      agenda_.pop();
      unplan(call);
    } else if (!plan_missing_inputs(call)) {
      agenda_.pop();
      run_call(call);
    }
  }
}

// What is made for all of them at once, and what was to come along, did not fit beside them. For one after the
// other, and nothing else, less is wanted at a time; what they share may have to be made again.
void Replay::bring_back_one_by_one() {
  std::vector<ValueId> targets(targets_.begin(), targets_.end());
  const auto sequence_of = [&](ValueId id) {
    const CallId producer = graph_.values()[id].producer;
    return producer ? graph_.calls()[producer].sequence : 0;
  };
  std::sort(targets.begin(), targets.end(),
            [&](ValueId a, ValueId b) { return sequence_of(a) < sequence_of(b); });
  for (const ValueId id : targets) {
    abandon_plan();
    plan(id);
    run_plan();
  }
}

void Replay::abandon_plan() noexcept {
  agenda_ = {};
  planned_.clear();
  number_ = ++engine_.replays_begun_;
  for (const ValueId id : held_) {
    Value& value = graph_.values()[id];
    value.wanted = 0;
    value.is_along = false;
    drop_scratch(id);
    if (value.is_resident()) engine_.reprice(id, Engine::Asked::kInAdvance);
  }
}

// Until the replay is over, it may move but must not go. A Source does not go anyway, and may have to stay
// where it is.
void Replay::keep(const Value& target) {
  if (!target.is_source()) engine_.pool_.set_tenure(target.block, Tenure::kMovable);
}

// --- running ---

// Throws where running Calls again and again leads nowhere.
void Replay::expect_progress(CallId call_id) {
  Call& call = graph_.calls()[call_id];
  constexpr std::uint32_t kRunsInCircles = 3;
  if (++call.runs == kRunsInCircles) {
    engine_.is_replay_in_circles_ = true;
    engine_.have_costs_fallen_ = true;
  }
  if (call.runs > engine_.options_.most_runs) {
    give_up(call, "What an operator needs again does not fit together with what it is made from.");
  }
  if (!engine_.patience_.spend(call.cost)) {
    give_up(call, "It would go on, but more than " +
                      std::to_string(std::lround(engine_.options_.most_slowdown)) +
                      " times slower than without a budget, for what is recomputed.");
  }
}

void Replay::give_up(const Call& call, const std::string& why) {
  Bytes bytes = 0;
  graph_.for_each_output(call, [&](ValueId, const Value& value) { bytes += value.bytes; });
  MemoryReport report = report_memory(engine_.pool_, bytes, engine_);
  report.smallest_budget = 0;  // it is not this request that does not fit
  if (engine_.is_observed()) {
    engine_.tell({.kind = EngineEvent::Kind::kOutOfMemory, .bytes = bytes});
  }
  throw OutOfMemory(report, why);
}

// What one Call needs while it runs; given back whatever happens.
struct Replay::Held {
  explicit Held(Engine& owner) : engine(owner) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    engine.unpin_all(pinned);
    for (const BlockId block : owned) engine.give_back(block);
  }
  Engine& engine;
  std::vector<BlockId> pinned;
  std::vector<BlockId> owned;  // blocks that are nobody's yet
};

void Replay::run_call(CallId call_id) {
  expect_progress(call_id);
  if (engine_.is_replay_in_circles_) engine_.evicting_.gather_what_is_free();
  try {
    try_call(call_id);
  } catch (const OutOfMemory& no_room) {
    // What it reads had to stay where it was. Before the Call begins anew, it can be moved aside.
    if (changes_inputs(graph_.calls()[call_id])) throw;
    make_room(graph_.calls()[call_id], no_room.report().requested);
    try_call(call_id);
  }
  for (const ValueId id : done_with_) {
    if (graph_.values().contains(id)) engine_.drop_if_planned(id);
  }
  done_with_.clear();
}

bool Replay::changes_inputs(const Call& call) const {
  bool changes = false;
  graph_.for_each_input(call, [&](const Edge& edge) { changes |= edge.is_mutated; });
  return changes;
}

void Replay::make_room(const Call& call, Bytes bytes) {
  std::vector<ValueId> inputs;
  graph_.for_each_input(call, [&](const Edge& edge) { inputs.push_back(edge.value); });
  engine_.make_room_beside(inputs, bytes);
}

void Replay::try_call(CallId call_id) {
  const Call& call = graph_.calls()[call_id];
  Held held(engine_);
  std::vector<BlockId> outputs(call.outputs);
  std::vector<std::pair<ValueId, BlockId>> claimed;
  std::vector<Edge> edges;
  graph_.for_each_input(call, [&](const Edge& edge) { edges.push_back(edge); });
  done_with_.reserve(edges.size() + outputs.size());
  held.pinned.reserve(edges.size());
  held.owned.reserve(edges.size());

  for (const Edge& edge : edges) {
    const BlockId block = graph_.values()[edge.value].block;
    engine_.pool_.pin(block);
    held.pinned.push_back(block);
  }
  for (const Edge& edge : edges) {
    if (!edge.is_mutated) continue;
    claimed.emplace_back(edge.value, claim_for_mutation(edge.value, held.owned));
    outputs[edge.mutated_output] = claimed.back().second;
  }
  std::vector<BlockId> inputs;
  for (const Edge& edge : edges) {
    // Whoever changes a Value and reads it besides reads what it changes.
    const auto own = std::find_if(claimed.begin(), claimed.end(),
                                  [&](const auto& claim) { return claim.first == edge.value; });
    inputs.push_back(own == claimed.end() ? graph_.values()[edge.value].block : own->second);
  }
  const Token token = call.token;
  const double cost = call.cost;
  engine_.replay_at_ = call.sequence;
  engine_.expect_allocations_by(call);
  run_without_lock(token, inputs, outputs);

  ++ran_;
  ++engine_.stats_.replays;
  engine_.stats_.replay_ns += cost;
  engine_.loss_.ran_again(cost);
  engine_.now_ += cost;
  if (engine_.is_observed()) {
    engine_.tell({.kind = EngineEvent::Kind::kReplayed, .token = token, .cost = cost});
  }
  held.owned.clear();
  deliver(call_id, outputs);
  unplan(call_id);
}

// Names are looked up again afterwards: tables may have grown. What we hold is still there.
void Replay::run_without_lock(Token call, std::span<const BlockId> inputs,
                              std::span<BlockId> outputs) {
  engine_.replaying_ = std::this_thread::get_id();
  engine_.mutex_.unlock();
  const auto come_back = [&]() noexcept {
    engine_.mutex_.lock();
    engine_.replaying_ = {};
    engine_.replay_ended_.notify_all();
  };
  try {
    engine_.world_.replay(call, inputs, outputs);
  } catch (...) {
    come_back();
    throw;
  }
  come_back();
}

// Takes the Value's block away from it, to be changed: a version that was changed where it was is past,
// and nobody reads it after whoever changed it. Pinned.
BlockId Replay::claim_for_mutation(ValueId id, std::vector<BlockId>& owned) noexcept {
  const Value& value = graph_.values()[id];
  COOP_CHECK(!value.is_current && !value.is_source());
  const BlockId block = engine_.displace(id);
  engine_.pool_.set_tenure(block, Tenure::kStays);
  engine_.pool_.pin(block);
  owned.push_back(block);
  return block;
}

void Replay::deliver(CallId call_id, std::span<const BlockId> outputs) {
  for (std::uint32_t i = 0; i < outputs.size(); ++i) {
    const BlockId block = outputs[i];
    COOP_CHECK(engine_.pool_.contains(block));
    ValueId receiver;
    graph_.for_each_output(graph_.calls()[call_id], [&](ValueId id, const Value& value) {
      const bool is_wanted = value.is_held() || value.wanted > 0;
      if (value.output == i && !value.is_resident() && is_wanted) receiver = id;
    });
    if (!receiver) {
      engine_.give_back(block);
      continue;
    }
    engine_.place(receiver, block);
    engine_.have_costs_fallen_ = true;
    graph_.values()[receiver].is_along = false;
    done_with_.push_back(receiver);
    const Value& value = graph_.values()[receiver];
    if (value.is_current) engine_.world_.attach(graph_.storages()[value.storage].token, block);
    if (value.is_target) keep(value);
    engine_.pool_.unpin(block);
  }
}

}  // namespace coop
