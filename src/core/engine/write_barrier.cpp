// Writes, and what they endanger.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/base/check.hpp"
#include "core/engine/compaction.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/replay.hpp"

namespace coop {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace

// Everything about writes that can fail, before anything is changed.
void Engine::prepare_writes(std::span<const Write> writes, RunningCall& call) {
  for (const Write& write : writes) {
    call.writes.push_back({.storage = write.storage,
                           .before = current_of(write.storage),
                           .reads_old = write.reads_old});
  }
  // Protecting what is made from one Source may make a Source of what another write overwrites, and
  // then what is made from that has to be protected too; so may finding memory. Nothing is written before
  // a round in which nothing had to be done.
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (RunningCall::Written& write : call.writes) {
      if (write.aside || !graph_.values()[write.before].is_source()) continue;
      const Descendants descendants = find_descendants({&write.before, 1}, kNoLimit);
      if (descendants.current.empty() && !descendants.are_in_use) continue;
      write.aside = descendants.are_in_use ? copy_aside(write.before)
                                           : protect(descendants.current, write.before);
      is_settled = false;
    }
    for (RunningCall::Written& write : call.writes) {
      const Value& before = graph_.values()[write.before];
      if (before.is_resident() == !write.fresh) continue;
      is_settled = false;
      if (write.fresh) {
        give_back(std::exchange(write.fresh, {}));  // it has come back
      } else {
        write.fresh = take(before.bytes);  // evicted: it needs memory, not its contents
      }
    }
  }
  call.pins.reserve(call.pins.size() + writes.size());
  for (const RunningCall::Written& write : call.writes) {
    if (write.fresh) {
      call.pins.push_back(write.fresh);
    } else {
      pin(graph_.values()[write.before].block, call.pins);
    }
  }
}

// The storage gets its next version, a Source for now; end_call knows better if the operator can be run
// again. If the operator fails, that is what it stays.
void Engine::begin_write(RunningCall::Written& write, std::uint32_t output,
                         RunningCall& call) noexcept {
  graph_.hold(write.before);
  if (write.reads_old) {
    graph_.hold(write.before);
    call.inputs.push_back({.value = write.before, .is_mutated = true, .mutated_output = output});
  }
  const Bytes bytes = graph_.values()[write.before].bytes;
  // The block goes on to the next version; what stays of this one is the copy, if there is one.
  const BlockId block = write.fresh ? write.fresh : displace(write.before);
  if (write.fresh) world_.attach(graph_.storages()[write.storage].token, block);
  write.version = graph_.add_source(write.storage, bytes, {});
  graph_.values()[write.version].is_being_written = !graph_.values()[write.before].is_source();
  place(write.version, block);
  if (write.aside) {
    place(write.before, write.aside);
    pool_.unpin(write.aside);
    note_orphan(write.before);
  }
}

// A Source is about to be written. What would be made from its old contents is made resident now and
// becomes a Source; or the old contents are copied aside, where that is cheaper. The copy's block, if
// there is one, is pinned.
BlockId Engine::protect(std::span<const ValueId> descendants, ValueId source) {
  const double copy_cost = static_cast<double>(graph_.values()[source].bytes) * kCopyNsPerByte;
  if (Replay::cost_of(*this, descendants) > copy_cost) {
    // The copy must not push out what it is made for; if there is no room for it, the other way remains.
    try {
      return copy_aside(source);
    } catch (const OutOfMemory&) {  // NOLINT(bugprone-empty-catch)
    }
  }
  make_sources(descendants);
  return {};
}

// A pinned block with a copy of the Value's contents.
BlockId Engine::copy_aside(ValueId source) {
  const Bytes bytes = graph_.values()[source].bytes;
  const BlockId aside = take(bytes);
  try {
    world_.copy(graph_.values()[source].block, aside, bytes);
  } catch (...) {
    give_back(aside);
    throw;
  }
  ++stats_.copies_aside;
  if (is_observed()) tell(about(EngineEvent::Kind::kCopiedAside, aside, source));
  return aside;
}

// The nearest current Values that are made from these, directly or through past ones. After `most` Values
// the search ends.
Engine::Descendants Engine::find_descendants(std::span<const ValueId> values, std::size_t most) {
  const std::uint64_t walk = ++walks_begun_;
  Descendants found;
  std::vector<ValueId> through(values.begin(), values.end());
  std::size_t seen = 0;
  while (!through.empty() && found.are_all) {
    const ValueId id = through.back();
    through.pop_back();
    graph_.for_each_reader(graph_.values()[id], [&](const Edge& edge) {
      if (!found.are_all) return;
      graph_.for_each_output(graph_.calls()[edge.call], [&](ValueId output, const Value& made) {
        if (++seen > most) found.are_all = false;
        if (made.seen_by == walk) return;
        graph_.values()[output].seen_by = walk;
        if (!made.is_current && made.holds > 0) found.are_in_use = true;
        (made.is_current ? found.current : through).push_back(output);
      });
    });
  }
  return found;
}

// While they are brought back, other threads may drop some of them: those are of no concern any more.
void Engine::make_sources(std::span<const ValueId> values) {
  std::vector<ValueId> there;
  std::copy_if(values.begin(), values.end(), std::back_inserter(there),
               [&](ValueId id) { return graph_.values().contains(id); });
  std::vector<BlockId> pins;
  try {
    bring_back(there, pins);
  } catch (...) {
    unpin_all(pins);
    throw;
  }
  for (const ValueId id : there) {
    if (!graph_.values().contains(id)) continue;
    const Value& value = graph_.values()[id];
    // What another thread has released meanwhile, and is kept, is as good as evicted: it is for others that are made
    // from it.
    if (!value.is_source() && value.is_resident() && !value.is_kept) cut(id);
  }
  unpin_all(pins);
}

// What is there is a Source from now on.
void Engine::cut(ValueId id) noexcept {
  graph_.cut(id);
  publish(id);
  if (is_observed()) tell(about(EngineEvent::Kind::kCut, graph_.values()[id].block, id));
  ++stats_.cuts;
}

}  // namespace coop
