// Which Calls are to be run again, and what is wanted until they have been.
#include <algorithm>
#include <limits>

#include "core/base/check.hpp"
#include "core/engine/replay.hpp"

namespace coop {

void Replay::plan(ValueId missing) {
  std::vector<ValueId> stack{missing};
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (graph_.values()[id].is_resident()) continue;
    const CallId call_id = graph_.values()[id].producer;
    COOP_CHECK(call_id);  // a Source that is not resident is lost
    Call& call = graph_.calls()[call_id];
    if (call.planned_by == number_) continue;
    agenda_.emplace(call.sequence, call_id);
    planned_.push_back(call_id);
    engine_.replay_cost_ += call.cost;
    call.planned_by = number_;
    if (call.runs_in != number_) {
      call.runs_in = number_;
      call.runs = 0;
    }
    graph_.for_each_input(call, [&](const Edge& edge) {
      hold(edge.value);
      stack.push_back(edge.value);
      Value& input = graph_.values()[edge.value];
      if (++input.wanted == 1 || call.sequence < input.wanted_by) input.wanted_by = call.sequence;
      if (input.wanted == 1 && input.is_resident())
        engine_.reprice(edge.value, Engine::Asked::kInAdvance);
    });
  }
}

// What is made besides, while what it is made from is there: what the plan of the step says, or else what could
// not be made later without the same past Values. Policies as published bring back what was asked for.
void Replay::bring_along() {
  if (engine_.is_as_planned()) {
    for (const ValueId id : engine_.planned_along()) plan_along(id);
  } else if (!engine_.keeps_regions()) {
    for (std::size_t next = 0; next < planned_.size();) {  // which grows on the way
      for (const ValueId id : made_from_past_outputs(planned_[next++])) plan_along(id);
    }
  }
}

void Replay::plan_along(ValueId id) {
  if (graph_.values()[id].is_along) return;
  hold(id);
  graph_.values()[id].is_along = true;
  has_along_ = true;
  plan(id);
}

// Current Values that are missing and made from past outputs of the Call, and else only from what is or will be
// there.
std::vector<ValueId> Replay::made_from_past_outputs(CallId call) const {
  constexpr int kMostReaders = 16;
  std::vector<ValueId> found;
  const auto will_be_there = [&](const Value& value) {
    return value.is_resident() ||
           (!value.is_source() && graph_.calls()[value.producer].planned_by == number_);
  };
  graph_.for_each_output(graph_.calls()[call], [&](ValueId, const Value& past) {
    if (past.is_current || past.is_resident()) return;
    int readers = 0;
    graph_.for_each_reader(past, [&](const Edge& edge) {
      const Call& reader = graph_.calls()[edge.call];
      if (reader.planned_by == number_ || ++readers > kMostReaders) return;
      bool can_be_made = true;
      graph_.for_each_input(reader, [&](const Edge& input) {
        can_be_made = can_be_made && will_be_there(graph_.values()[input.value]);
      });
      if (!can_be_made) return;
      graph_.for_each_output(reader, [&](ValueId id, const Value& made) {
        if (made.is_current && !made.is_resident()) found.push_back(id);
      });
    });
  });
  return found;
}

void Replay::unplan(CallId call_id) noexcept {
  Call& call = graph_.calls()[call_id];
  call.planned_by = 0;
  graph_.for_each_input(call, [&](const Edge& edge) {
    Value& input = graph_.values()[edge.value];
    if (--input.wanted > 0) {
      input.wanted_by = next_reader(input);
      return;
    }
    drop_scratch(edge.value);
    if (!input.is_resident()) return;
    engine_.reprice(edge.value, Engine::Asked::kInAdvance);
    // Room was made before the Call ran; what is not in it stays a little longer.
    if (done_with_.size() < done_with_.capacity()) done_with_.push_back(edge.value);
  });
}

std::uint64_t Replay::next_reader(const Value& value) const {
  std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
  graph_.for_each_reader(value, [&](const Edge& edge) {
    const Call& reader = graph_.calls()[edge.call];
    if (reader.planned_by == number_) next = std::min(next, reader.sequence);
  });
  return next;
}

// A past Value that is not kept has memory only while somebody is going to read it.
void Replay::drop_scratch(ValueId id) noexcept {
  const Value& value = graph_.values()[id];
  const bool is_scratch = value.is_resident() && !value.is_held() && !value.is_source();
  if (is_scratch && value.wanted == 0) engine_.give_back(engine_.displace(id));
}

bool Replay::is_needed(const Call& call) const {
  bool is_needed = false;
  graph_.for_each_output(call, [&](ValueId, const Value& value) {
    if (!value.is_resident() && (value.wanted > 0 || value.is_target || value.is_along))
      is_needed = true;
  });
  return is_needed;
}

bool Replay::plan_missing_inputs(CallId call_id) {
  std::vector<ValueId> missing;
  graph_.for_each_input(graph_.calls()[call_id], [&](const Edge& edge) {
    if (!graph_.values()[edge.value].is_resident()) missing.push_back(edge.value);
  });
  for (const ValueId id : missing) plan(id);
  return !missing.empty();
}

double Replay::cost_of(Engine& engine, std::span<const ValueId> targets) {
  Graph& graph = engine.graph_;
  const std::uint64_t number = ++engine.replays_begun_;
  double cost = 0;
  std::vector<ValueId> stack(targets.begin(), targets.end());
  while (!stack.empty()) {
    const Value& value = graph.values()[stack.back()];
    stack.pop_back();
    if (value.is_resident()) continue;
    Call& call = graph.calls()[value.producer];
    if (call.planned_by == number) continue;
    call.planned_by = number;
    cost += call.cost;
    graph.for_each_input(call, [&](const Edge& edge) { stack.push_back(edge.value); });
  }
  return cost;
}

}  // namespace coop
