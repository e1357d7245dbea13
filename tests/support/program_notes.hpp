#pragma once

// Notes which cases of the notes on lineage a program comes by, as far as replays do not tell.

#include <algorithm>
#include <vector>

#include "support/machine.hpp"

namespace coop::testing {

// A storage that an operator writes.
struct WrittenSlot {
  std::size_t slot = 0;
  bool reads_old = true;
  std::optional<Content> before;  // what it should have held, once it is written
};

// A name is about to be read.
inline void note_read(Machine& m, Name name) {
  const Machine::Slot* slot = m.find(name);
  if (slot == nullptr || !slot->is_held()) return;
  const bool is_updated =
      std::any_of(slot->uses.begin(), slot->uses.end(), [&](const Machine::Slot::Use& use) {
        return use.version < slot->version && m.slots[use.made].is_alive();
      });
  m.coverage.note_if(is_updated, Seen::kUsedUpdatedUsed);
  if (!m.is_evicted(*slot)) return;
  m.coverage.note_if(slot->has_lost_first_name, Seen::kOnlyViewAlive);
  const Machine::Binding& binding = m.binding(name);
  const bool is_old_view = !binding.is_first && binding.version < slot->version;
  m.coverage.note_if(is_old_view, Seen::kViewBeforeWrite);

  const Graph& graph = m.engine.graph();
  bool reads_orphan = false;
  bool reads_past = false;
  graph.for_each_input(graph.calls()[m.current(*slot).producer], [&](const Edge& edge) {
    const Value& value = graph.values()[edge.value];
    if (value.is_orphan) reads_orphan = true;
    if (value.is_current || value.is_source()) return;
    reads_past = true;
    // Of another storage, which has been changed since.
    if (!graph.storages().contains(value.storage) || value.storage == slot->storage) return;
    const Value& now = graph.values()[graph.storages()[value.storage].current];
    m.coverage.note_if(!now.is_resident(), Seen::kReaderOfChanged);
  });
  m.coverage.note_if(reads_orphan && reads_past, Seen::kCarried);
}

inline void note_writes(Machine& m, const std::vector<std::size_t>& reads,
                        const std::vector<WrittenSlot>& writes) {
  const Graph& graph = m.engine.graph();
  int sources = 0;
  for (const WrittenSlot& write : writes) {
    const Machine::Slot& slot = m.slots[write.slot];
    const bool is_read = std::find(reads.begin(), reads.end(), write.slot) != reads.end();
    const bool is_lost = m.is_evicted(slot) && !write.reads_old && !is_read;
    m.coverage.note_if(is_lost, Seen::kOverwrittenEvicted);
    m.coverage.note_if(!write.reads_old && slot.overwritten_in_a_row >= 3, Seen::kBufferEachStep);
    const Value& value = m.current(slot);
    if (!value.is_source() || value.readers == 0) continue;
    ++sources;
    m.coverage.note(Seen::kSourceWritten);
    CallId first;
    bool is_tied = false;
    bool goes_through_past = false;
    graph.for_each_reader(value, [&](const Edge& edge) {
      if (first && edge.call != first) is_tied = true;
      first = edge.call;
      if (graph.calls()[edge.call].current_outputs == 0) goes_through_past = true;
    });
    m.coverage.note_if(is_tied, Seen::kTied);
    m.coverage.note_if(goes_through_past, Seen::kSourceWrittenThroughPast);
  }
  m.coverage.note_if(sources > 1, Seen::kSeveralSourcesWritten);
}

// An operator is about to begin.
inline void note_operator(Machine& m, const Event& event, const std::vector<std::size_t>& reads,
                          const std::vector<WrittenSlot>& writes) {
  for (const Name name : event.reads) note_read(m, name);
  note_writes(m, reads, writes);
  const bool makes_nothing = writes.empty() && event.makes.empty();
  m.coverage.note_if(makes_nothing && !reads.empty() && event.is_replayable, Seen::kAliased);
  for (const Event& hook : event.inside) {
    for (const Target& target : hook.writes) {
      const auto slot = m.binding(target.name).slot;
      if (!slot) continue;
      const bool is_read = std::find(reads.begin(), reads.end(), *slot) != reads.end();
      const bool is_written = std::any_of(writes.begin(), writes.end(),
                                          [&](const auto& write) { return write.slot == *slot; });
      m.coverage.note_if(is_read || is_written, Seen::kHookWrites);
    }
  }
}

// It has ended, and these are its new storages. Some of them the engine must not think it can make.
inline void note_products(Machine& m, const Event& event, const std::vector<std::size_t>& reads,
                          const std::vector<StorageId>& storages, bool loses_source) {
  const Graph& graph = m.engine.graph();
  for (const StorageId storage : storages) {
    const bool is_source = graph.values()[graph.storages()[storage].current].is_source();
    m.coverage.note_if(!event.is_replayable, Seen::kNeverReplayed);
    m.coverage.note_if(event.is_replayable && loses_source, Seen::kEffectGivesSources);
    EXPECT_TRUE(is_source || (event.is_replayable && !loses_source));
  }
  if (storages.empty() || event.resizes != kNobody) return;
  constexpr std::size_t kMostUses = 8;
  for (const std::size_t read : reads) {
    Machine::Slot& slot = m.slots[read];
    if (slot.is_held() && m.current(slot).is_source() && slot.uses.size() < kMostUses) {
      slot.uses.push_back({slot.version, m.slots.size() - 1});
    }
  }
}

}  // namespace coop::testing
