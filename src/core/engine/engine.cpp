#include "core/engine/engine.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/engine/entry.hpp"
#include "core/engine/replay.hpp"
#include "core/engine/told.hpp"

namespace coop {

namespace {

// Buffers of RunningCalls that are kept for the next ones.
constexpr std::size_t kSpareCalls = 16;
// Nanoseconds: eleven days.
constexpr double kMostCost = 1e15;

}  // namespace

Engine::Engine(Pool& pool, Policy& policy, World& world, const EngineOptions& options)
    : pool_(pool),
      policy_(policy),
      world_(world),
      options_(options),
      evicting_(pool, policy, *this, options.clock),
      graph_(*this),
      patience_(options.most_slowdown) {
  spare_calls_.reserve(kSpareCalls);
}

ValueId Engine::current_of(StorageId id) const {
  if (!graph_.storages().contains(id)) {
    throw InvalidArgument("there is no storage " + std::to_string(id.index()) +
                          ": it was released, or never added");
  }
  return graph_.storages()[id].current;
}

// --- the program's operators ---

// Nothing to bring back, nothing to protect: what another thread runs again is of no concern.
bool Engine::can_begin_at_once(std::span<const StorageId> reads,
                               std::span<const Write> writes) const {
  return writes.empty() && graph_.hidden_count() <= most_hidden() + hidden_allowed_ &&
         std::all_of(reads.begin(), reads.end(),
                     [&](StorageId id) { return graph_.values()[current_of(id)].is_resident(); });
}

RunningCall Engine::begin_call(std::span<const StorageId> reads, std::span<const Write> writes) {
  Entry entry(*this);
  entry.refuse_inside_replay();
  const std::uint64_t number = ++calls_begun_;
  RunningCall call;
  try {
    call = begin(entry, reads, writes);
  } catch (...) {
    if (requests_ != nullptr) requests_->on_begin(number, reads, writes, /*has_failed=*/true);
    throw;
  }
  call.number = number;
  if (requests_ != nullptr) requests_->on_begin(number, reads, writes, /*has_failed=*/false);
  return call;
}

RunningCall Engine::begin(Entry& entry, std::span<const StorageId> reads,
                          std::span<const Write> writes) {
  if (!can_begin_at_once(reads, writes)) entry.wait_for_replay();
  std::vector<ValueId> targets = std::move(targets_);
  targets.clear();
  for (const StorageId storage : reads) targets.push_back(current_of(storage));
  const std::uint64_t walk = ++walks_begun_;
  for (const Write& write : writes) {
    const ValueId current = current_of(write.storage);
    if (std::exchange(graph_.values()[current].seen_by, walk) == walk) {
      throw InvalidArgument("an operator names a storage that it writes twice");
    }
    if (write.reads_old) targets.push_back(current);
  }
  bound_lineage();
  if (forecast_) tell_forecast_of_begin(reads, writes);

  RunningCall call = new_running_call();
  call.inputs.reserve(targets.size());
  call.writes.reserve(writes.size());
  try {
    bring_back_or_gather(targets, call.pins);
    prepare_writes(writes, call);
    graph_.reserve(0, writes.size(), 0);
    reserve_orphans(2 * writes.size());
  } catch (...) {
    // The operator has not begun: everything is as it was.
    for (const RunningCall::Written& write : call.writes) {
      if (write.aside) give_back(write.aside);
      if (write.fresh) give_back(write.fresh);
    }
    unpin_all(call.pins);
    throw;
  }
  for (const StorageId storage : reads) {
    call.inputs.push_back({.value = current_of(storage)});
    graph_.hold(call.inputs.back().value);
  }
  call.changes_source = std::any_of(call.writes.begin(), call.writes.end(), [&](const auto& it) {
    return it.reads_old && graph_.values()[it.before].is_source();
  });
  for (std::uint32_t i = 0; i < writes.size(); ++i) begin_write(call.writes[i], i, call);
  targets_ = std::move(targets);
  begin_memory_of_call();
  return call;
}

// Outputs are numbered: first what was written where it was, then what was made.
std::vector<StorageId> Engine::end_call(RunningCall& call, const CallResult& result) {
  const Entry entry(*this);
  if (!std::isfinite(result.cost) || result.cost < 0) {
    throw InvalidArgument("what a call costs must be finite and not negative");
  }
  for (const NewOutput& output : result.outputs) {
    if (!pool_.contains(output.block))
      throw InvalidArgument("an output needs a block of this pool");
  }
  const std::size_t made = result.outputs.size();
  const std::size_t written = call.writes.size();
  graph_.reserve(made, made, call.inputs.size());
  reserve_orphans(made);
  reserve_forgotten();
  if (forecast_) prepare_forecast_of_end(call, result);
  std::vector<StorageId> storages;
  storages.reserve(made);

  // Nothing below throws.
  bool is_recorded = result.is_replayable;
  for (const Graph::Input& input : call.inputs) {
    const Value& value = graph_.values()[input.value];
    // A Source that the operator itself has overwritten is lost, and with it the way back. If there is
    // a copy, it is for others, and should not live on as the past of what was written.
    const bool is_lost = value.is_source() && (input.is_mutated || !value.is_resident());
    if (is_lost || value.depth >= options_.most_depth) is_recorded = false;
  }
  const bool changes_what_lasts = changes_state(call);
  if (changes_what_lasts) is_recorded = false;
  // Sums of costs stay finite, whatever the world claims.
  const double cost = std::min(result.cost, kMostCost);
  now_ += cost;
  stats_.base_ns += cost;
  loss_.ran(cost);
  ++stats_.calls;
  CallId recorded;
  if (is_recorded) {
    const auto outputs = static_cast<std::uint32_t>(written + made);
    recorded = graph_.add_call(result.token, cost, outputs, call.inputs);
    patience_.record(cost);
  }
  patience_.earn(cost);
  if (is_observed()) {
    tell({.kind = EngineEvent::Kind::kRecorded, .token = result.token, .cost = result.cost});
  }

  if (recorded) {
    adopt_written(call, recorded);
  } else if (is_observed()) {
    tell_of_written(call);
  }
  for (std::uint32_t i = 0; i < made; ++i) {
    const NewOutput& output = result.outputs[i];
    const StorageId storage = graph_.add_storage(output.storage);
    graph_.storages()[storage].serial = ++storages_added_;
    const ValueId id = graph_.add_source(storage, output.bytes, {});
    // Small blocks are never evicted: nobody will ask how to make them again.
    if (is_recorded && !output.is_source && !pool_.info(output.block).is_small) {
      graph_.adopt(recorded, static_cast<std::uint32_t>(written) + i, id);
    }
    density_.observe(cost, output.bytes);
    if (is_recorded) recorded_density_.add(cost, output.bytes);
    note_written(storage, result.is_replayable && !output.is_source);
    place(id, output.block);
    world_.attach(output.storage, output.block);
    pool_.unpin(output.block);
    storages.push_back(storage);
  }
  least_room_ = std::min(least_room_, pool_.room_bytes());
  if (recorded) {
    graph_.settle(recorded);
  } else if (result.is_replayable) {
    forgotten_.push_back(result.token);
  }
  if (forecast_) tell_forecast_of_end(call, result, recorded, storages);
  note_writes(call, changes_what_lasts);
  if (requests_ != nullptr) requests_->on_end(call.number, result, storages);
  finish(call);
  call.was_recorded = is_recorded;
  if (forecast_) follow_plan();
  return storages;
}

// Activations are changed where they are soon after they were made. What is changed long after it was written is what
// one step leaves to the next: parameters that were made inside the budget, an optimizer's state. To make it again would
// take the gradients of all steps; so it would become a Source sooner or later, and each at another time, so that no
// step would be like the one before.
bool Engine::changes_state(const RunningCall& call) const noexcept {
  constexpr std::uint64_t kCalls = 256;
  return std::any_of(call.writes.begin(), call.writes.end(), [&](const RunningCall::Written& it) {
    const std::uint64_t written_at = graph_.storages()[it.storage].written_at;
    return it.reads_old && written_at > 0 && stats_.calls - written_at > kCalls;
  });
}

// The versions that the operator wrote can be made again from now on, but for those that are Sources for
// good.
void Engine::adopt_written(const RunningCall& call, CallId recorded) noexcept {
  for (std::uint32_t i = 0; i < call.writes.size(); ++i) {
    const RunningCall::Written& write = call.writes[i];
    // Others may have run meanwhile (a hook, another thread): have overwritten it, or read it, and
    // were then recorded before this Call, which therefore cannot be where they get it from.
    if (!graph_.values().contains(write.version)) continue;
    const Value& version = graph_.values()[write.version];
    if (!version.is_current || version.readers > 0) continue;
    const bool is_small = pool_.info(version.block).is_small;
    const bool is_exported = graph_.storages()[write.storage].is_source_forever;
    if (is_small || is_exported) continue;
    graph_.adopt(recorded, i, write.version);
    publish(write.version);
    if (is_observed()) tell(about(EngineEvent::Kind::kPlaced, version.block, write.version));
  }
}

// What could be made again, and cannot any more: its block is another's now.
void Engine::tell_of_written(const RunningCall& call) noexcept {
  for (const RunningCall::Written& write : call.writes) {
    if (!graph_.values().contains(write.version)) continue;
    const Value& version = graph_.values()[write.version];
    const bool was_source = graph_.values()[write.before].is_source();
    if (!was_source && version.is_current && version.is_resident()) {
      tell(about(EngineEvent::Kind::kCut, version.block, write.version));
    }
  }
}

void Engine::note_writes(const RunningCall& call, bool changes_what_lasts) noexcept {
  for (const RunningCall::Written& write : call.writes) {
    const Storage& storage = graph_.storages()[write.storage];
    const bool was_of_a_step = storage.written_at > 0 && !changes_what_lasts;
    const bool is_source = graph_.values()[storage.current].is_source();
    note_written(write.storage, was_of_a_step || !is_source);
  }
}

// By this steps are found to be alike, so it must be the program's doing and not memory's: whether a small one is a Source
// depends on whether there was room among the small ones, and a lineage may have ended for want of memory.
void Engine::note_written(StorageId id, bool is_of_a_step) noexcept {
  Storage& storage = graph_.storages()[id];
  const bool is_small = graph_.values()[storage.current].bytes <= pool_.small_limit();
  const bool counts = is_of_a_step && !is_small && !storage.is_source_forever;
  storage.written_at = counts ? stats_.calls : 0;
}

// Room for every Call to go, so that none needs memory for it.
void Engine::reserve_forgotten() {
  const std::size_t needed = forgotten_.size() + graph_.calls().size() + 1;
  if (forgotten_.capacity() < needed) forgotten_.reserve(2 * needed);
}

void Engine::abort_call(RunningCall& call) noexcept {
  const Entry entry(*this);
  if (requests_ != nullptr && call.number != 0) {
    requests_->on_request({.kind = EngineRequest::Kind::kAbort, .call = call.number});
  }
  abort(call);
}

void Engine::abort(RunningCall& call) noexcept {
  for (const RunningCall::Written& write : call.writes) {
    const bool is_latest = graph_.storages()[write.storage].current == write.version;
    if (!write.fresh || !is_latest) continue;
    world_.detach(graph_.storages()[write.storage].token);
    graph_.restore(write.storage, write.before);
  }
  finish(call);
}

void Engine::make_room(RunningCall& call, Bytes bytes) {
  Entry entry(*this);
  entry.refuse_inside_replay();
  entry.wait_for_replay();
  if (!call.writes.empty()) throw InvalidArgument("an operator that writes cannot begin anew");
  Told told(*this, {.kind = EngineRequest::Kind::kMakeRoom, .bytes = bytes, .call = call.number});
  std::vector<ValueId> inputs;
  for (const Graph::Input& input : call.inputs) inputs.push_back(input.value);
  for (const BlockId block : call.pins) pool_.unpin(block);
  const auto pin_again = [&]() noexcept {
    for (const BlockId block : call.pins) pool_.pin(block);
  };
  try {
    make_room_beside(inputs, bytes);
  } catch (...) {
    pin_again();
    throw;
  }
  pin_again();
  begin_memory_of_call();
  told.is_done();
}

void Engine::finish(RunningCall& call) noexcept {
  for (const Graph::Input& input : call.inputs) {
    const Value& value = graph_.values()[input.value];
    if (value.is_resident()) pool_.touch(value.block, now_);
    graph_.unhold(input.value);
  }
  for (const RunningCall::Written& write : call.writes) {
    if (graph_.values().contains(write.version)) {
      graph_.values()[write.version].is_being_written = false;
    }
    graph_.unhold(write.before);
  }
  unpin_all(call.pins);
  call.inputs.clear();
  call.writes.clear();
  call.number = 0;
  if (spare_calls_.size() < kSpareCalls) spare_calls_.push_back(std::move(call));
}

RunningCall Engine::new_running_call() {
  if (spare_calls_.empty()) return {};
  RunningCall call = std::move(spare_calls_.back());
  spare_calls_.pop_back();
  return call;
}

// What is there of the targets may lie so that no piece between is long enough for the rest: it must not move while
// others come back. An optimizer's operator reads all that there is. Before it begins, all of it can be moved together.
void Engine::bring_back_or_gather(std::span<const ValueId> targets, std::vector<BlockId>& pins) {
  try {
    if (has_planned_alone()) {
      Replay(*this, targets, pins).run();
    } else {
      bring_back(targets, pins);
    }
  } catch (const OutOfMemory& error) {
    unpin_all(pins);
    const MemoryReport& report = error.report();
    const bool lies_apart =
        report.largest_room < report.requested && report.requested <= report.free;
    // Another thread may have put something else in the place of one, meanwhile.
    const bool are_all_there = std::all_of(
        targets.begin(), targets.end(), [&](ValueId id) { return graph_.values().contains(id); });
    if (!lies_apart || !are_all_there || !evicting_.gather_what_is_free()) throw;
    bring_back(targets, pins);
  }
}

void Engine::bring_back(std::span<const ValueId> targets, std::vector<BlockId>& pins) {
  // Most of the time everything is there.
  const bool are_resident = std::all_of(targets.begin(), targets.end(), [&](ValueId id) {
    return graph_.values()[id].is_resident();
  });
  if (are_resident) {
    for (const ValueId id : targets) pin(graph_.values()[id].block, pins);
    return;
  }
  Replay(*this, targets, pins).run();
}

// --- checking ---

void Engine::validate() const {
  pool_.validate();
  graph_.validate();
  Bytes orphaned = 0;
  graph_.values().for_each([&](ValueId id, const Value& value) {
    // A Source that is being overwritten is gone already, and held until the operator ends.
    COOP_CHECK(value.is_resident() || !value.is_source() || value.holds > 0);
    COOP_CHECK(value.wanted == 0 && !value.is_target);
    COOP_CHECK(!value.region || !(value.is_resident() || value.is_source()));
    if (value.is_resident()) {
      COOP_CHECK(pool_.contains(value.block) && value_of_[value.block.index()] == id);
      COOP_CHECK(value.is_held() || value.is_source() || value.holds > 0);
    }
    if (value.is_orphan) orphaned += value.bytes;
  });
  COOP_CHECK(orphaned == stats_.held_by_lineage);
  // Every block is somebody's, or in use by whoever allocated it.
  for (const Chunk* chunk : pool_.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const BlockId block = chunk->is_hole(slot) ? BlockId{} : pool_.id_of(chunk->block_at(slot));
      if (!pool_.contains(block)) continue;  // a hole or a slab
      const ValueId owner = value_of_[block.index()];
      COOP_CHECK(owner ? graph_.values()[owner].block == block : pool_.info(block).pins > 0);
    }
  }
}

}  // namespace coop
