#pragma once

// Looks at every replay and notes which rows and cases of the notes on lineage it is an instance
// of.

#include <algorithm>
#include <vector>

#include "core/engine/engine.hpp"
#include "support/coverage.hpp"
#include "support/hash_world.hpp"

namespace coop::testing {

class ReplayWatcher final : public ReplayObserver {
 public:
  ReplayWatcher(const Engine& engine, Coverage& coverage)
      : graph_(engine.graph()), coverage_(coverage) {}

  void replay_begins(Token token, const HashOp& op) override {
    const Call& call = find(token);
    if (schedule_ != call.planned_by) {
      schedule_ = call.planned_by;
      read_.clear();
      ran_.clear();
    }
    coverage_.note_if(std::find(ran_.begin(), ran_.end(), token) != ran_.end(), Seen::kReplanned);
    ran_.push_back(token);
    note_operator(op);
    note_outputs(call, op);
    note_inputs(call);
  }

 private:
  const Call& find(Token token) const {
    const Call* found = nullptr;
    graph_.calls().for_each([&](CallId, const Call& call) {
      if (call.token == token) found = &call;
    });
    COOP_CHECK(found != nullptr);
    return *found;
  }

  void note_operator(const HashOp& op) {
    coverage_.note_if(op.is_random, Seen::kRandom);
    coverage_.note_if(op.has_effect, Seen::kEffectLeftOut);
    coverage_.note_if(op.workspace > 0, Seen::kWorkspace);
    coverage_.note_if(op.has_empty_output, Seen::kZeroBytes);
    coverage_.note_if(op.is_resize, Seen::kResized);
    coverage_.note_if(!op.unrepeatable.empty(), Seen::kUnrepeatableOutput);
  }

  void note_outputs(const Call& call, const HashOp& op) {
    std::uint32_t received = 0;
    graph_.for_each_output(call, [&](ValueId, const Value& value) {
      if (value.is_resident() || (!value.is_current && value.wanted == 0)) return;
      ++received;
      const bool is_written = value.output < op.overwrites.size();
      if (is_written && op.overwrites[value.output] == 0) {
        coverage_.note(Seen::kMutated);
      } else {
        coverage_.note_if(is_written, Seen::kOverwrittenWhole);
        coverage_.note(value.is_current ? Seen::kAttached : Seen::kScratch);
      }
    });
    coverage_.note_if(received < call.outputs, Seen::kDropped);
    coverage_.note_if(call.living_outputs < call.outputs, Seen::kOneOutputDead);
  }

  void note_inputs(const Call& call) {
    std::vector<Edge> edges;
    graph_.for_each_input(call, [&](const Edge& edge) { edges.push_back(edge); });
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const Value& value = graph_.values()[edges[i].value];
      for (std::size_t k = 0; k < i; ++k) {
        if (edges[k].value != edges[i].value) continue;
        const bool is_changed = edges[k].is_mutated || edges[i].is_mutated;
        coverage_.note(is_changed ? Seen::kInputAndChanged : Seen::kInputTwice);
      }
      if (edges[i].is_mutated) {
        const bool was_read = std::find(read_.begin(), read_.end(), edges[i].value) != read_.end();
        coverage_.note_if(was_read, Seen::kMutatedAfterReader);
        continue;
      }
      bool is_overwritten = false;
      graph_.for_each_output(call, [&](ValueId, const Value& output) {
        if (output.storage == value.storage) is_overwritten = true;
      });
      const bool is_changed = std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
        return edge.is_mutated && edge.value == edges[i].value;
      });
      coverage_.note_if(is_overwritten && !is_changed, Seen::kInputAndOverwritten);
      const bool is_exported = graph_.storages().contains(value.storage) &&
                               graph_.storages()[value.storage].is_source_forever;
      coverage_.note_if(is_exported, Seen::kExportedRead);
    }
    // What this Call itself changes is not read "before".
    for (const Edge& edge : edges) {
      if (!edge.is_mutated) read_.push_back(edge.value);
    }
  }

  const Graph& graph_;
  Coverage& coverage_;
  std::uint64_t schedule_ = 0;
  std::vector<ValueId> read_;  // in this schedule
  std::vector<Token> ran_;     // in this schedule
};

}  // namespace coop::testing
