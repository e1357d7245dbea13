#include "sim/simulator/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/simulator/demand.hpp"
#include "sim/simulator/trace_machine.hpp"

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
            .moving_ns = eviction.moving_ns - before.eviction.moving_ns,
            .more_to_halve = loss.more_to_halve,
            .evictions = eviction.evictions - before.eviction.evictions,
            .evicted_bytes = eviction.evicted_bytes - before.eviction.evicted_bytes,
            .moved_bytes = eviction.moved_bytes - before.eviction.moved_bytes,
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
        machine_(trace, options),
        step_began_(machine_.engine()) {
    result_.budget = options.budget;
    if (options.most_recomputing > 0) costs_ = measure_cost_by_step(trace);
  }

  SimulationResult run() {
    try {
      while (run_pass()) machine_.end_pass();
    } catch (const OutOfMemory& error) {
      fail(error.what(), error.report());
    } catch (const TooSlow& error) {
      fail("recomputing takes more than " + std::to_string(std::lround(options_.most_recomputing)) +
               " times as long as the step itself",
           error.memory());
      result_.failure->is_too_slow = true;
    }
    result_.most_held_bytes = machine_.most_held_bytes();
    return std::move(result_);
  }

 private:
  // The trace from its beginning to its end; whether it is to be run again.
  bool run_pass() {
    is_in_step_ = false;
    stretch_ = 0;
    allow_replays();
    if (!trace_.has_step_marks()) begin_step();
    for (at_ = 0; at_ < trace_.events().size(); ++at_) {
      const TraceEvent& event = trace_.events()[at_];
      machine_.check_stop();
      if (event.kind == EventKind::kStep) {
        end_step();
        if (result_.steps.size() == steps_wanted_) return false;
        begin_step();
        ++stretch_;
        allow_replays();
      } else if (event.kind == EventKind::kFails) {
        may_fail_ = true;
      } else {
        run_event(event, std::exchange(may_fail_, false));
      }
    }
    if (options_.brings_back_outputs) machine_.bring_back_outputs();
    end_step();
    return result_.steps.size() < steps_wanted_;
  }

  void begin_step() {
    is_in_step_ = true;
    step_began_ = Figures(machine_.engine());
    machine_.begin_loss_anew();
  }
  void end_step() {
    if (is_in_step_) result_.steps.push_back(Figures(machine_.engine()).since(step_began_));
    is_in_step_ = false;
  }

  void allow_replays() {
    if (options_.most_recomputing <= 0) return;
    // A stretch without calls may bring back what the one before it has made: a mark at the end of a loop's body.
    const double cost =
        costs_[stretch_] > 0 ? costs_[stretch_] : *std::max_element(costs_.begin(), costs_.end());
    machine_.allow_replays(options_.most_recomputing * cost);
  }

  // The program went on where it was out of memory when it was recorded.
  void run_event(const TraceEvent& event, bool may_fail) {
    try {
      machine_.run_event(event);
    } catch (const OutOfMemory&) {
      if (!may_fail) throw;
    }
  }

  void fail(std::string why, const MemoryReport& memory) {
    result_.failure = {.event = at_,
                       .step = result_.steps.size(),
                       .op = failed_op(),
                       .why = std::move(why),
                       .memory = memory};
  }
  [[nodiscard]] std::string failed_op() const {
    if (at_ >= trace_.events().size()) return {};
    const TraceEvent& event = trace_.events()[at_];
    const bool is_call = event.kind == EventKind::kCall || event.kind == EventKind::kFinish;
    return is_call ? trace_.name(trace_.call(event.call()).op) : "";
  }

  const Trace& trace_;
  const SimulationOptions& options_;
  std::size_t steps_wanted_;
  TraceMachine machine_;

  std::vector<double> costs_;  // by stretch, if they matter
  std::size_t stretch_ = 0;    // of the trace: before its first step, or its step of this number
  std::size_t at_ = 0;         // the event that is run
  bool is_in_step_ = false;
  bool may_fail_ = false;  // the next event
  Figures step_began_;
  SimulationResult result_;
};

}  // namespace

SimulationResult simulate(const Trace& trace, const SimulationOptions& options) {
  return Simulation(trace, options).run();
}

}  // namespace coop::sim
