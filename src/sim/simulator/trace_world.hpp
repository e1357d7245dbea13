#pragma once

// The world in which traces run: memory has addresses and nothing behind them, an operator does nothing
// but take and give memory.

#include <algorithm>

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
    most_held_bytes_ = std::max(most_held_bytes_, engine_->pool().held_bytes());
    return block;
  }
  [[nodiscard]] Bytes most_held_bytes() const { return most_held_bytes_; }

  // The call's workspace, taken when its outputs have been allocated, and gone with the call.
  void use_workspace(const TraceCall& call) {
    if (call.workspace_bytes > 0) engine_->free(allocate(call.workspace_bytes, call.cost_ns));
  }

  void replay(Token token, std::span<const BlockId> /*inputs*/,
              std::span<BlockId> outputs) override {
    const TraceCall call = trace_.call(CallNumber{static_cast<std::uint32_t>(token - 1)});
    const std::size_t written = call.writes.size();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool is_changed_where_it_is = i < written && call.writes[i].reads_old;
      if (is_changed_where_it_is) continue;
      const StorageNumber storage = i < written
                                        ? call.writes[i].storage
                                        : call.output(static_cast<std::uint32_t>(i - written));
      try {
        outputs[i] = allocate(trace_.storage(storage).bytes, call.cost_ns);
      } catch (...) {
        give_back(call, outputs.first(i));
        throw;
      }
    }
    try {
      use_workspace(call);
    } catch (...) {
      give_back(call, outputs);
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
  // What this replay has allocated: all but what is changed where it is.
  void give_back(const TraceCall& call, std::span<const BlockId> outputs) noexcept {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool is_changed_where_it_is = i < call.writes.size() && call.writes[i].reads_old;
      if (!is_changed_where_it_is) engine_->free(outputs[i]);
    }
  }

  const Trace& trace_;
  Engine* engine_ = nullptr;
  Bytes most_held_bytes_ = 0;
};

}  // namespace coop::sim
