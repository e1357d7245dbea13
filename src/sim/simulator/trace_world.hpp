#pragma once

// The world in which traces run: memory has addresses and nothing behind them, an operator does nothing
// but take and give memory.

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/engine/world.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/trace.hpp"

namespace coop::sim {

// To run Calls again takes too long. No OutOfMemory: to that the engine knows other ways.
class TooSlow : public Error {
 public:
  explicit TooSlow(MemoryReport memory)
      : Error("recomputing takes too long"), memory_(std::move(memory)) {}
  [[nodiscard]] const MemoryReport& memory() const { return memory_; }

 private:
  MemoryReport memory_;
};

class TraceWorld final : public World {
 public:
  explicit TraceWorld(const Trace& trace) : trace_(trace) {}
  void set_engine(Engine& engine) { engine_ = &engine; }

  // To the engine 0 is nobody's.
  static Token token_of(StorageNumber storage) { return Token{index_of(storage)} + 1; }
  static Token token_of(CallNumber call) { return Token{index_of(call)} + 1; }

  // From now on Calls may run again for this long; whoever wants more gets TooSlow. ...
  void allow_replays(double ns) { replay_ns_left_ = ns; }
  // ... Once this is set, Stopped. Null: it never is.
  void set_stop(const std::atomic<bool>* stop) { stop_ = stop; }
  void check_stop() const {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) throw Stopped();
  }

  // An empty storage has an address too. `cost`: of what it is for.
  BlockId allocate(Bytes bytes, double cost = 0, bool lives_long = false) {
    const BlockId block =
        engine_->allocate_memory(std::max<Bytes>(bytes, 1), cost, lives_long).block;
    note_held();
    return block;
  }
  void note_held() { most_held_bytes_ = std::max(most_held_bytes_, engine_->pool().held_bytes()); }
  [[nodiscard]] Bytes most_held_bytes() const { return most_held_bytes_; }

  // Takes what the call takes while it runs, its outputs' memory and what else it needs, and gives back the
  // latter. If it throws, it has given back all of it, the last first, as a function does that is left.
  void run_memory(const TraceCall& call, double cost, std::span<BlockId> outputs) {
    Unwinding taken(*this);
    if (call.memory.empty()) {
      for (std::uint32_t i = 0; i < call.outputs; ++i) {
        outputs[i] = taken.add(allocate_output(call, i, cost));
      }
      if (call.workspace_bytes > 0) engine_->free(allocate(call.workspace_bytes, cost));
    }
    own_.clear();
    for (const MemoryStep& step : call.memory) {
      switch (step.kind) {
        case MemoryStep::Kind::kOutput:
          outputs[step.value] =
              taken.add(allocate_output(call, static_cast<std::uint32_t>(step.value), cost));
          break;
        case MemoryStep::Kind::kTake:
          own_.push_back(taken.add(allocate(step.value, cost)));
          break;
        case MemoryStep::Kind::kGive:
          taken.give_back(own_[step.value]);
          break;
      }
    }
    if (own_.empty()) {
      taken.hand_over_all();
    } else {
      taken.hand_over(outputs);
    }
  }

  void replay(Token token, std::span<const BlockId> /*inputs*/,
              std::span<BlockId> outputs) override {
    const TraceCall call = trace_.call(CallNumber{static_cast<std::uint32_t>(token - 1)});
    check_stop();
    replay_ns_left_ -= call.cost_ns;
    if (replay_ns_left_ < 0) throw TooSlow(report_of(call));
    const std::size_t written = call.writes.size();
    Unwinding fresh(*this);
    for (std::size_t i = 0; i < written; ++i) {
      if (call.writes[i].reads_old) continue;  // changed where it is
      outputs[i] = fresh.add(allocate(trace_.storage(call.writes[i].storage).bytes, call.cost_ns));
    }
    run_memory(call, call.cost_ns, outputs.subspan(written));
    fresh.hand_over_all();
  }
  void attach(Token /*storage*/, BlockId /*block*/) noexcept override {}
  void detach(Token /*storage*/) noexcept override {}
  void copy(BlockId /*from*/, BlockId /*to*/, Bytes /*bytes*/) override {}
  void relocate(const Token* /*storage*/, BlockId /*block*/, Bytes /*from*/, Bytes /*to*/,
                Bytes /*bytes*/) override {}
  void forget(Token /*call*/) noexcept override {}

 private:
  // Blocks that are given back, the last first, unless they are handed over. One inside the other.
  class Unwinding {
   public:
    explicit Unwinding(TraceWorld& world) : world_(world), begin_(world.unwinding_.size()) {}
    Unwinding(const Unwinding&) = delete;
    Unwinding& operator=(const Unwinding&) = delete;
    ~Unwinding() {
      for (; blocks().size() > begin_; blocks().pop_back()) world_.engine_->free(blocks().back());
    }
    BlockId add(BlockId block) {
      try {
        blocks().push_back(block);
      } catch (...) {
        world_.engine_->free(block);
        throw;
      }
      return block;
    }
    void give_back(BlockId block) noexcept {
      hand_over({&block, 1});
      world_.engine_->free(block);
    }
    void hand_over(std::span<const BlockId> handed) noexcept {
      const auto is_handed = [&](BlockId block) {
        return std::find(handed.begin(), handed.end(), block) != handed.end();
      };
      const auto from = blocks().begin() + static_cast<std::ptrdiff_t>(begin_);
      blocks().erase(std::remove_if(from, blocks().end(), is_handed), blocks().end());
    }
    void hand_over_all() noexcept { blocks().resize(begin_); }

   private:
    [[nodiscard]] std::vector<BlockId>& blocks() const { return world_.unwinding_; }
    TraceWorld& world_;
    std::size_t begin_;
  };

  BlockId allocate_output(const TraceCall& call, std::uint32_t number, double cost) {
    return allocate(trace_.storage(call.output(number)).bytes, cost);
  }

  [[nodiscard]] MemoryReport report_of(const TraceCall& call) const {
    MemoryReport report = engine_->report();
    for (std::uint32_t i = 0; i < call.outputs; ++i) {
      report.requested += trace_.storage(call.output(i)).bytes;
    }
    report.smallest_budget = 0;  // it is not this request that does not fit
    return report;
  }

  const Trace& trace_;
  Engine* engine_ = nullptr;
  // Of the call that runs; kept for their memory.
  std::vector<BlockId> own_;  // what it takes for itself, in order
  std::vector<BlockId> unwinding_;
  Bytes most_held_bytes_ = 0;
  double replay_ns_left_ = std::numeric_limits<double>::infinity();
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace coop::sim
