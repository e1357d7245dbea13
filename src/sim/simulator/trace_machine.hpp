#pragma once

// An engine on memory that is not there, and what the events of a trace ask of it.

#include <algorithm>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/pool/backing.hpp"
#include "core/pool/pool.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/simulator/trace_world.hpp"

namespace coop::sim {

class TraceMachine {
 public:
  TraceMachine(const Trace& trace, const SimulationOptions& options)
      : trace_(trace),
        policy_(make_policy(options.policy, options.policy_options)),
        pool_({.bytes = options.budget,
               .fit = policy_->traits().fit,
               .small_limit = small_limit_of(trace, options),
               .ignores_addresses = options.ignores_addresses},
              backing_),
        world_(trace),
        engine_(pool_, *policy_, world_, options.engine),
        storages_(trace.storages().size()),
        blocks_(trace.block_count()) {
    world_.set_engine(engine_);
    world_.set_stop(options.stop);
  }

  [[nodiscard]] const Engine& engine() const { return engine_; }
  void begin_loss_anew() { engine_.begin_loss_anew(); }
  [[nodiscard]] Bytes most_held_bytes() const { return world_.most_held_bytes(); }

  void allow_replays(double ns) { world_.allow_replays(ns); }
  void check_stop() const { world_.check_stop(); }

  void run_event(const TraceEvent& event) {
    switch (event.kind) {
      case EventKind::kCall:
        return run_call(event.call());
      case EventKind::kRelease:
        return release(event.storage());
      case EventKind::kSource:
        return add_source(event.storage());
      case EventKind::kExport:
        return engine_.export_storage(at(event.storage()));
      case EventKind::kPin:
        return pin(event.storage());
      case EventKind::kUnpin:
        return unpin(event.storage());
      case EventKind::kForeign:
        return add_foreign(event.storage());
      case EventKind::kBlock:
        return add_block(event.block());
      case EventKind::kFree:
        return free_block(event.block());
      case EventKind::kAdopt:
        return adopt(event.storage());
      case EventKind::kBegin:
        return begin_run(event.run());
      case EventKind::kRoom:
        return make_room(trace_.block(event.block()));
      case EventKind::kFinish:
        return finish_run(event.call());
      case EventKind::kAbort:
        return abort_run(event.run());
      case EventKind::kKeep:
        return engine_.keep_in_place(at(event.storage()));
      case EventKind::kSettle:
        return engine_.end_lineage(at(event.storage()));
      case EventKind::kBring:
        return engine_.make_resident(at(event.storage()));
      case EventKind::kEvictAll:
        return engine_.evict_all();
      case EventKind::kCompact:
        return engine_.compact();
      case EventKind::kStep:
      case EventKind::kAnnotate:
      case EventKind::kFails:
      case EventKind::kEvicted:
      case EventKind::kAgain:
        return;
    }
  }

  // All at the same time, as for an operator that reads them all.
  void bring_back_outputs() {
    reads_.clear();
    for_each_output([&](StorageId storage) { reads_.push_back(storage); });
    RunningCall reads_all = engine_.begin_call(reads_, {});
    engine_.end_call(reads_all, {});
  }

  // What the trace left behind goes, but for what came from outside.
  void end_pass() {
    for_each_output([&](StorageId& storage) {
      engine_.release(storage);
      storage = {};
    });
    for (BlockId& block : blocks_) {
      if (block) engine_.free(std::exchange(block, {}));
    }
  }

 private:
  static Bytes small_limit_of(const Trace& trace, const SimulationOptions& options) {
    if (options.ignores_addresses) return 0;
    if (options.small_limit) return *options.small_limit;
    return trace.recorded_with() ? trace.recorded_with()->small_limit : PoolOptions{}.small_limit;
  }

  StorageId& at(StorageNumber storage) { return storages_[index_of(storage)]; }

  void add_source(StorageNumber storage) {
    if (at(storage)) return;  // still there from the last time that the trace was run
    const Bytes bytes = trace_.storage(storage).bytes;
    const BlockId block = world_.allocate(bytes);
    at(storage) = engine_.add_source(TraceWorld::token_of(storage), bytes, block);
  }

  void add_foreign(StorageNumber storage) {
    if (at(storage)) return;
    const Bytes bytes = trace_.storage(storage).bytes;
    at(storage) = engine_.add_foreign_source(TraceWorld::token_of(storage), bytes, bytes);
    world_.note_held();
  }

  void release(StorageNumber storage) {
    if (!at(storage)) return;  // it could not be had
    engine_.release(at(storage));
    at(storage) = {};
  }

  // --- memory that is no storage's ---

  void add_block(BlockNumber number) {
    const TraceBlock& block = trace_.block(number);
    const StorageNumber storage = block.adopted_by;
    if (storage != kNoStorage && at(storage)) return;  // still there from the last time
    blocks_[index_of(number)] = world_.allocate(block.bytes, block.cost_ns, block.lives_long);
  }
  void free_block(BlockNumber number) {
    const BlockId block = std::exchange(blocks_[index_of(number)], {});
    if (block) engine_.free(block);  // otherwise it could not be had
  }
  void adopt(StorageNumber storage) {
    if (at(storage)) return;
    const TraceStorage& about = trace_.storage(storage);
    BlockId& block = blocks_[index_of(about.block)];
    at(storage) = engine_.add_source(TraceWorld::token_of(storage), about.bytes, block);
    block = {};
  }

  // --- calls ---

  RunningCall begin(std::span<const StorageNumber> reads, std::span<const TraceWrite> writes) {
    reads_.clear();
    for (const StorageNumber storage : reads) reads_.push_back(at(storage));
    writes_.clear();
    for (const TraceWrite& write : writes) {
      writes_.push_back({.storage = at(write.storage), .reads_old = write.reads_old});
    }
    return engine_.begin_call(reads_, writes_);
  }

  void end(RunningCall& running, CallNumber number, const TraceCall& call) {
    outputs_.clear();
    for (std::uint32_t i = 0; i < call.outputs; ++i) {
      const TraceStorage& output = trace_.storage(call.output(i));
      outputs_.push_back({.block = made_[i],
                          .storage = TraceWorld::token_of(call.output(i)),
                          .bytes = output.bytes,
                          .is_source = output.is_source});
    }
    const auto made = engine_.end_call(running, {.token = TraceWorld::token_of(number),
                                                 .cost = call.cost_ns,
                                                 .is_replayable = call.is_replayable,
                                                 .outputs = outputs_});
    std::copy(made.begin(), made.end(), storages_.begin() + index_of(call.first_output));
  }

  void run_call(CallNumber number) {
    const TraceCall call = trace_.call(number);
    RunningCall running = begin(call.reads, call.writes);
    made_.assign(call.outputs, BlockId{});
    try {
      world_.run_memory(call, call.memory.empty() ? call.cost_ns : call.expected_ns, made_);
    } catch (...) {
      engine_.abort_call(running);
      throw;
    }
    end(running, number, call);
  }

  void begin_run(RunNumber number) {
    const TraceRun run = trace_.run(number);
    running_.emplace(index_of(number), begin(run.reads, run.writes));
  }
  void make_room(const TraceBlock& room) {
    const auto found = running_.find(index_of(room.room_for));
    if (found != running_.end()) engine_.make_room(found->second, room.bytes);
  }
  void finish_run(CallNumber number) {
    const TraceCall call = trace_.call(number);
    const auto found = running_.find(index_of(call.run));
    made_.clear();
    for (std::uint32_t i = 0; i < call.outputs; ++i) {
      const BlockNumber block = trace_.storage(call.output(i)).block;
      made_.push_back(std::exchange(blocks_[index_of(block)], {}));
    }
    end(found->second, number, call);
    running_.erase(found);
  }
  void abort_run(RunNumber number) {
    const auto found = running_.find(index_of(number));
    if (found == running_.end()) return;  // it could not begin
    engine_.abort_call(found->second);
    running_.erase(found);
  }

  // To the engine a pin is an operator that reads the storage and does not end.
  void pin(StorageNumber storage) {
    const StorageId id = at(storage);
    pins_.emplace(index_of(storage), engine_.begin_call({&id, 1}, {}));
  }
  void unpin(StorageNumber storage) {
    const auto found = pins_.find(index_of(storage));
    engine_.abort_call(found->second);
    pins_.erase(found);
  }

  // fn(StorageId&) for what calls made and nobody has released.
  template <typename Function>
  void for_each_output(Function&& fn) {
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i] && trace_.storages()[i].is_output) fn(storages_[i]);
    }
  }

  const Trace& trace_;
  std::unique_ptr<Policy> policy_;
  FakeBacking backing_;
  Pool pool_;
  TraceWorld world_;
  Engine engine_;
  std::vector<StorageId> storages_;                      // by number; none: not alive
  std::vector<BlockId> blocks_;                          // by number; none: freed, or a storage's
  std::unordered_map<std::uint32_t, RunningCall> pins_;  // by storage
  std::unordered_map<std::uint32_t, RunningCall> running_;  // by run
  // Of the call that runs; kept for their memory.
  std::vector<StorageId> reads_;
  std::vector<Write> writes_;
  std::vector<BlockId> made_;
  std::vector<NewOutput> outputs_;
};

}  // namespace coop::sim
