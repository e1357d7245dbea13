#pragma once

// The world in which traces run: memory has addresses and nothing behind them, an operator does nothing
// but take and give memory.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/engine/world.hpp"
#include "sim/trace/trace.hpp"

namespace coop::sim {

class TraceWorld final : public World {
 public:
  explicit TraceWorld(const Trace& trace) : trace_(trace) {}
  void set_engine(Engine& engine) { engine_ = &engine; }

  // To the engine 0 is nobody's.
  static Token token_of(StorageNumber storage) { return Token{index_of(storage)} + 1; }
  static Token token_of(CallNumber call) { return Token{index_of(call)} + 1; }

  // An empty storage has an address too. `cost`: of what it is for.
  BlockId allocate(Bytes bytes, double cost = 0) {
    const BlockId block = engine_->allocate(std::max<Bytes>(bytes, 1), cost);
    note_held();
    return block;
  }
  void note_held() { most_held_bytes_ = std::max(most_held_bytes_, engine_->pool().held_bytes()); }
  [[nodiscard]] Bytes most_held_bytes() const { return most_held_bytes_; }

  // Takes what the call takes while it runs, its outputs' memory and what else it needs, and gives back the
  // latter. If it throws, it has given back all of it.
  void run_memory(const TraceCall& call, double cost, std::span<BlockId> outputs) {
    std::vector<BlockId> taken;
    taken.reserve(call.memory.size());
    const auto give_back = [&](std::span<BlockId> blocks) noexcept {
      for (BlockId& block : blocks) {
        if (block) engine_->free(std::exchange(block, {}));
      }
    };
    try {
      if (call.memory.empty()) {
        for (std::uint32_t i = 0; i < call.outputs; ++i)
          outputs[i] = allocate_output(call, i, cost);
        if (call.workspace_bytes > 0) engine_->free(allocate(call.workspace_bytes, cost));
      }
      for (const MemoryStep& step : call.memory) {
        switch (step.kind) {
          case MemoryStep::Kind::kOutput:
            outputs[step.value] =
                allocate_output(call, static_cast<std::uint32_t>(step.value), cost);
            break;
          case MemoryStep::Kind::kTake:
            taken.push_back(allocate(step.value, cost));
            break;
          case MemoryStep::Kind::kGive:
            engine_->free(std::exchange(taken[step.value], {}));
            break;
        }
      }
    } catch (...) {
      give_back(taken);
      give_back(outputs);
      throw;
    }
    give_back(taken);
  }

  void replay(Token token, std::span<const BlockId> /*inputs*/,
              std::span<BlockId> outputs) override {
    const TraceCall call = trace_.call(CallNumber{static_cast<std::uint32_t>(token - 1)});
    const std::size_t written = call.writes.size();
    std::vector<BlockId> fresh;
    fresh.reserve(written);
    try {
      for (std::size_t i = 0; i < written; ++i) {
        if (call.writes[i].reads_old) continue;  // changed where it is
        const Bytes bytes = trace_.storage(call.writes[i].storage).bytes;
        fresh.push_back(outputs[i] = allocate(bytes, call.cost_ns));
      }
      run_memory(call, call.cost_ns, outputs.subspan(written));
    } catch (...) {
      for (const BlockId block : fresh) engine_->free(block);
      throw;
    }
  }
  void attach(Token /*storage*/, BlockId /*block*/) noexcept override {}
  void detach(Token /*storage*/) noexcept override {}
  void copy(BlockId /*from*/, BlockId /*to*/, Bytes /*bytes*/) override {}
  void relocate(const Token* /*storage*/, BlockId /*block*/, Bytes /*from*/, Bytes /*to*/,
                Bytes /*bytes*/) override {}
  void forget(Token /*call*/) noexcept override {}

 private:
  BlockId allocate_output(const TraceCall& call, std::uint32_t number, double cost) {
    return allocate(trace_.storage(call.output(number)).bytes, cost);
  }

  const Trace& trace_;
  Engine* engine_ = nullptr;
  Bytes most_held_bytes_ = 0;
};

}  // namespace coop::sim
