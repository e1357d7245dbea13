#include "sim/simulator/simulator.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "core/pool/backing.hpp"
#include "core/pool/pool.hpp"
#include "sim/simulator/trace_world.hpp"

namespace coop::sim {
namespace {

// The engine's figures grow from its beginning; a step is the difference of two of these.
struct Figures {
  EngineStats engine;
  EvictionStats eviction;
  Loss loss;

  explicit Figures(const Engine& from)
      : engine(from.stats()), eviction(from.eviction_stats()), loss(from.loss()) {}

  [[nodiscard]] StepResult since(const Figures& before) const {
    const std::uint64_t served = eviction.served - before.eviction.served;
    const double fragmentation = eviction.fragmentation_sum - before.eviction.fragmentation_sum;
    return {.base_ns = engine.base_ns - before.engine.base_ns,
            .recomputed_ns = engine.replay_ns - before.engine.replay_ns,
            .more_to_halve = loss.more_to_halve,
            .evictions = eviction.evictions - before.eviction.evictions,
            .evicted_bytes = eviction.evicted_bytes - before.eviction.evicted_bytes,
            .recomputed_calls = engine.replays - before.engine.replays,
            .searches = eviction.searches - before.eviction.searches,
            .search_ns = eviction.search_ns - before.eviction.search_ns,
            .fragmentation = served == 0 ? 0 : fragmentation / static_cast<double>(served)};
  }
};

class Simulation {
 public:
  Simulation(const Trace& trace, const SimulationOptions& options)
      : trace_(trace),
        options_(options),
        steps_wanted_(options.steps == 0 ? trace.step_count() : options.steps),
        policy_(make_policy(options.policy, options.policy_options)),
        pool_({.bytes = options.budget,
               .fit = policy_->traits().fit,
               .small_limit = options.ignores_addresses ? 0 : options.small_limit,
               .ignores_addresses = options.ignores_addresses},
              backing_),
        world_(trace),
        engine_(pool_, *policy_, world_, options.engine),
        storages_(trace.storages().size()),
        step_began_(engine_) {
    world_.set_engine(engine_);
    result_.budget = options.budget;
  }

  SimulationResult run() {
    try {
      while (run_pass()) end_pass();
    } catch (const OutOfMemory& error) {
      result_.failure = {.event = at_,
                         .step = result_.steps.size(),
                         .op = failed_op(),
                         .why = error.what(),
                         .memory = error.report()};
    }
    result_.most_held_bytes = world_.most_held_bytes();
    return std::move(result_);
  }

 private:
  // The trace from its beginning to its end; whether it is to be run again.
  bool run_pass() {
    is_in_step_ = false;
    if (!trace_.has_step_marks()) begin_step();
    for (at_ = 0; at_ < trace_.events().size(); ++at_) {
      const TraceEvent& event = trace_.events()[at_];
      if (event.kind == EventKind::kStep) {
        end_step();
        if (result_.steps.size() == steps_wanted_) return false;
        begin_step();
      } else {
        run_event(event);
      }
    }
    if (options_.brings_back_outputs) bring_back_outputs();
    end_step();
    return result_.steps.size() < steps_wanted_;
  }

  void begin_step() {
    is_in_step_ = true;
    step_began_ = Figures(engine_);
    engine_.begin_loss_anew();
  }
  void end_step() {
    if (is_in_step_) result_.steps.push_back(Figures(engine_).since(step_began_));
    is_in_step_ = false;
  }

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
      case EventKind::kStep:
      case EventKind::kAnnotate:
        return;
    }
  }

  StorageId& at(StorageNumber storage) { return storages_[index_of(storage)]; }

  void add_source(StorageNumber storage) {
    if (at(storage)) return;  // still there from the last time that the trace was run
    const Bytes bytes = trace_.storage(storage).bytes;
    const BlockId block = world_.allocate(bytes);
    at(storage) = engine_.add_source(TraceWorld::token_of(storage), bytes, block);
  }

  void release(StorageNumber storage) {
    engine_.release(at(storage));
    at(storage) = {};
  }

  void run_call(CallNumber number) {
    const TraceCall call = trace_.call(number);
    reads_.clear();
    for (const StorageNumber storage : call.reads) reads_.push_back(at(storage));
    writes_.clear();
    for (const TraceWrite& write : call.writes) {
      writes_.push_back({.storage = at(write.storage), .reads_old = write.reads_old});
    }
    RunningCall running = engine_.begin_call(reads_, writes_);
    outputs_.clear();
    try {
      for (std::uint32_t i = 0; i < call.outputs; ++i) {
        const TraceStorage& output = trace_.storage(call.output(i));
        outputs_.push_back({.block = world_.allocate(output.bytes, call.cost_ns),
                            .storage = TraceWorld::token_of(call.output(i)),
                            .bytes = output.bytes,
                            .is_source = output.is_source});
      }
      world_.use_workspace(call);
    } catch (...) {
      for (const NewOutput& output : outputs_) engine_.free(output.block);
      engine_.abort_call(running);
      throw;
    }
    const auto made = engine_.end_call(running, {.token = TraceWorld::token_of(number),
                                                 .cost = call.cost_ns,
                                                 .is_replayable = call.is_replayable,
                                                 .outputs = outputs_});
    std::copy(made.begin(), made.end(), storages_.begin() + index_of(call.first_output));
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

  // All at the same time, as for an operator that reads them all.
  void bring_back_outputs() {
    reads_.clear();
    for_each_output([&](StorageId storage) { reads_.push_back(storage); });
    RunningCall reads_all = engine_.begin_call(reads_, {});
    engine_.end_call(reads_all, {});
  }

  void end_pass() {
    for_each_output([&](StorageId& storage) {
      engine_.release(storage);
      storage = {};
    });
  }

  [[nodiscard]] std::string failed_op() const {
    if (at_ >= trace_.events().size()) return {};
    const TraceEvent& event = trace_.events()[at_];
    return event.kind == EventKind::kCall ? trace_.name(trace_.call(event.call()).op) : "";
  }

  const Trace& trace_;
  const SimulationOptions& options_;
  std::size_t steps_wanted_;
  std::unique_ptr<Policy> policy_;
  FakeBacking backing_;
  Pool pool_;
  TraceWorld world_;
  Engine engine_;
  std::vector<StorageId> storages_;  // by number; none: not alive
  std::unordered_map<std::uint32_t, RunningCall> pins_;

  std::size_t at_ = 0;  // the event that is run
  bool is_in_step_ = false;
  Figures step_began_;
  SimulationResult result_;
  // Of the call that runs; kept for their memory.
  std::vector<StorageId> reads_;
  std::vector<Write> writes_;
  std::vector<NewOutput> outputs_;
};

}  // namespace

SimulationResult simulate(const Trace& trace, const SimulationOptions& options) {
  return Simulation(trace, options).run();
}

}  // namespace coop::sim
