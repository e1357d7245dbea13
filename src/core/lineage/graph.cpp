#include "core/lineage/graph.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace coop {

// --- growing ---

void Graph::reserve(std::size_t storages, std::size_t values, std::size_t edges) {
  storages_.reserve_free(storages);
  values_.reserve_free(values);
  edges_.reserve_free(edges);
  calls_.reserve_free(1);
}

StorageId Graph::add_storage(Token token) { return storages_.add(Storage{.token = token}); }

ValueId Graph::add_source(StorageId storage, Bytes bytes, BlockId block) {
  const ValueId id = values_.add(Value{.storage = storage, .bytes = bytes, .block = block});
  make_current(storage, id);
  return id;
}

CallId Graph::add_call(Token token, double cost, std::uint32_t outputs,
                       std::span<const Input> inputs) {
  edges_.reserve_free(inputs.size());
  const CallId id = calls_.add(
      Call{.token = token, .cost = cost, .sequence = next_sequence_++, .outputs = outputs});
  Call& call = calls_[id];
  for (const Input& input : inputs) {
    Value& value = values_[input.value];
    const EdgeId edge = edges_.add(Edge{.value = input.value,
                                        .call = id,
                                        .is_mutated = input.is_mutated,
                                        .mutated_output = input.mutated_output,
                                        .next_reader = value.first_reader});
    if (value.first_reader) edges_[value.first_reader].previous_reader = edge;
    value.first_reader = edge;
    ++value.readers;
    if (call.last_input) {
      edges_[call.last_input].next_input = edge;
    } else {
      call.first_input = edge;
    }
    call.last_input = edge;
  }
  return id;
}

ValueId Graph::add_output(CallId call, std::uint32_t output, StorageId storage, Bytes bytes,
                          BlockId block) {
  const ValueId id = add_source(storage, bytes, block);
  adopt(call, output, id);
  return id;
}

void Graph::adopt(CallId call_id, std::uint32_t output, ValueId id) noexcept {
  Value& value = values_[id];
  Call& call = calls_[call_id];
  COOP_CHECK(value.is_source() && value.is_current);
  std::uint32_t depth = 0;
  for_each_input(call,
                 [&](const Edge& edge) { depth = std::max(depth, values_[edge.value].depth); });
  value.producer = call_id;
  value.output = output;
  value.depth = depth + 1;
  value.next_output = call.first_output;
  call.first_output = id;
  COOP_CHECK(output < call.outputs);
  ++call.living_outputs;
  ++call.current_outputs;
}

void Graph::make_current(StorageId storage_id, ValueId value) noexcept {
  Storage& storage = storages_[storage_id];
  const ValueId before = storage.current;
  storage.current = value;
  values_[value].is_current = true;
  if (before) retire(before);
}

void Graph::restore(StorageId storage, ValueId before) noexcept {
  Value& value = values_[before];
  if (value.producer && ++calls_[value.producer].current_outputs == 1) unhide(value.producer);
  make_current(storage, before);
}

void Graph::settle(CallId id) noexcept {
  if (calls_[id].living_outputs > 0) return;
  ValueId doomed;
  erase_call(id, doomed);
  erase_doomed(doomed);
}

// --- letting go ---

void Graph::remove_storage(StorageId id) noexcept {
  const ValueId current = storages_[id].current;
  storages_.erase(id);
  if (current) retire(current);
}

void Graph::retire(ValueId id) noexcept {
  Value& value = values_[id];
  value.is_current = false;
  if (value.producer && --calls_[value.producer].current_outputs == 0) hide(value.producer);
  let_go(id);
}

void Graph::unhold(ValueId id) noexcept {
  --values_[id].holds;
  let_go(id);
}

void Graph::cut(ValueId id) noexcept {
  Value& value = values_[id];
  if (value.is_source()) return;
  ValueId doomed;
  leave_producer(id, doomed);
  value.depth = 0;
  erase_doomed(doomed);
}

void Graph::let_go(ValueId id) noexcept {
  ValueId doomed;
  doom_if_unneeded(id, doomed);
  erase_doomed(doomed);
}

// `doomed` heads a list of Values that are to go, linked through themselves.
void Graph::doom_if_unneeded(ValueId id, ValueId& doomed) noexcept {
  Value& value = values_[id];
  if (value.is_current || value.readers > 0 || value.holds > 0) return;
  value.next_doomed = doomed;
  doomed = id;
}

void Graph::erase_doomed(ValueId doomed) noexcept {
  while (doomed) {
    const ValueId id = doomed;
    doomed = values_[id].next_doomed;
    listener_.value_goes(id, values_[id]);
    if (values_[id].producer) leave_producer(id, doomed);
    values_.erase(id);
  }
}

void Graph::leave_producer(ValueId id, ValueId& doomed) noexcept {
  Value& value = values_[id];
  const CallId call_id = value.producer;
  Call& call = calls_[call_id];
  // Outputs are few.
  if (call.first_output == id) {
    call.first_output = value.next_output;
  } else {
    ValueId before = call.first_output;
    while (values_[before].next_output != id) before = values_[before].next_output;
    values_[before].next_output = value.next_output;
  }
  value.next_output = {};
  value.producer = {};
  if (value.is_current && --call.current_outputs == 0) hide(call_id);
  if (--call.living_outputs == 0) erase_call(call_id, doomed);
}

void Graph::hide(CallId id) noexcept {
  calls_[id].is_hidden = true;
  calls_[id].previous_hidden = last_hidden_;
  (last_hidden_ ? calls_[last_hidden_].next_hidden : first_hidden_) = id;
  last_hidden_ = id;
  ++hidden_count_;
}

void Graph::unhide(CallId id) noexcept {
  const Call call = calls_[id];
  (call.previous_hidden ? calls_[call.previous_hidden].next_hidden : first_hidden_) =
      call.next_hidden;
  (call.next_hidden ? calls_[call.next_hidden].previous_hidden : last_hidden_) =
      call.previous_hidden;
  calls_[id].is_hidden = false;
  calls_[id].previous_hidden = {};
  calls_[id].next_hidden = {};
  --hidden_count_;
}

void Graph::erase_call(CallId id, ValueId& doomed) noexcept {
  if (calls_[id].is_hidden) unhide(id);
  const Call call = calls_[id];
  for (EdgeId edge_id = call.first_input; edge_id;) {
    const Edge edge = edges_[edge_id];
    Value& value = values_[edge.value];
    if (edge.previous_reader) {
      edges_[edge.previous_reader].next_reader = edge.next_reader;
    } else {
      value.first_reader = edge.next_reader;
    }
    if (edge.next_reader) edges_[edge.next_reader].previous_reader = edge.previous_reader;
    --value.readers;
    edges_.erase(edge_id);
    doom_if_unneeded(edge.value, doomed);
    edge_id = edge.next_input;
  }
  listener_.call_goes(id, call);
  calls_.erase(id);
}

// --- checking ---

void Graph::validate() const {
  std::size_t edges = 0;
  values_.for_each([&](ValueId id, const Value& value) {
    COOP_CHECK(value.is_current || value.readers > 0 || value.holds > 0);
    COOP_CHECK(value.is_current ==
               (storages_.contains(value.storage) && storages_[value.storage].current == id));
    COOP_CHECK(value.is_source() || calls_.contains(value.producer));
    std::uint32_t readers = 0;
    for_each_reader(value, [&](const Edge& edge) {
      COOP_CHECK(edge.value == id && calls_.contains(edge.call));
      ++readers;
    });
    COOP_CHECK(readers == value.readers);
  });
  calls_.for_each([&](CallId id, const Call& call) {
    std::uint32_t living = 0;
    std::uint32_t current = 0;
    for_each_output(call, [&](ValueId, const Value& value) {
      COOP_CHECK(value.producer == id);
      ++living;
      if (value.is_current) ++current;
    });
    COOP_CHECK(living > 0 && living == call.living_outputs && current == call.current_outputs);
    for_each_input(call, [&](const Edge& edge) {
      const Value& value = values_[edge.value];
      COOP_CHECK(edge.call == id);
      COOP_CHECK(value.is_source() || calls_[value.producer].sequence < call.sequence);
      ++edges;
    });
  });
  COOP_CHECK(edges == edges_.size());
  std::size_t hidden = 0;
  for (CallId id = first_hidden_; id; id = calls_[id].next_hidden) {
    COOP_CHECK(calls_[id].current_outputs == 0);
    ++hidden;
  }
  COOP_CHECK(hidden == hidden_count_);
}

}  // namespace coop
