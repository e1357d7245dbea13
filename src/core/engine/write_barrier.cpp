// Writes, and everything that ends a lineage.
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
    if (value.is_source() || !value.is_resident()) continue;
    graph_.cut(id);
    publish(id);
    if (is_observed()) tell(about(EngineEvent::Kind::kCut, value.block, id));
    ++stats_.cuts;
  }
  unpin_all(pins);
}

void Engine::note_orphan(ValueId id) noexcept {
  Value& value = graph_.values()[id];
  if (value.is_orphan) return;
  value.is_orphan = true;
  stats_.held_by_lineage += value.bytes;
  orphans_.push_back(id);
  orphan_looks_due_ += 2;
}

// An orphan that takes room for the sake of Values that are smaller than it is goes: those are kept
// instead.
bool Engine::is_orphan_worth_keeping(ValueId orphan, std::size_t most_walked) {
  if (!graph_.values().contains(orphan)) return false;
  const Descendants descendants = find_descendants({&orphan, 1}, most_walked);
  if (!descendants.are_all || descendants.are_in_use) return true;
  Bytes bytes = 0;
  for (const ValueId id : descendants.current) {
    if (!graph_.values()[id].is_resident()) return true;
    bytes += graph_.values()[id].bytes;
  }
  if (bytes > graph_.values()[orphan].bytes) return true;
  make_sources(descendants.current);
  return graph_.values().contains(orphan);
}

// Looks at the next orphan, which goes if it can.
void Engine::end_next_orphan(std::size_t most_walked) {
  if (next_orphan_ >= orphans_.size()) next_orphan_ = 0;
  if (is_orphan_worth_keeping(orphans_[next_orphan_], most_walked)) {
    ++next_orphan_;
    return;
  }
  orphans_[next_orphan_] = orphans_.back();
  orphans_.pop_back();
}

// Many orphans that are small one by one can be large together: Values for which more is kept than they
// are themselves are kept instead. True if that has freed anything.
bool Engine::end_orphans(std::size_t most_walked) {
  const Bytes before = stats_.held_by_lineage;
  std::erase_if(orphans_, [&](ValueId id) { return !graph_.values().contains(id); });
  const Descendants descendants = find_descendants(orphans_, most_walked);
  if (!descendants.are_all) return false;
  for (const ValueId id : descendants.current) {
    if (!graph_.values().contains(id)) continue;
    const Value& value = graph_.values()[id];
    if (value.is_resident() && orphaned_bytes_behind(id) > value.bytes) make_sources({&id, 1});
  }
  return stats_.held_by_lineage < before;
}

// Of all orphans that a Value is made from, directly or through past ones.
Bytes Engine::orphaned_bytes_behind(ValueId value) {
  const std::uint64_t walk = ++walks_begun_;
  Bytes bytes = 0;
  std::vector<ValueId> back{value};
  while (!back.empty()) {
    const CallId producer = graph_.values()[back.back()].producer;
    back.pop_back();
    if (!producer) continue;
    graph_.for_each_input(graph_.calls()[producer], [&](const Edge& edge) {
      Value& input = graph_.values()[edge.value];
      if (input.is_current || input.seen_by == walk) return;
      input.seen_by = walk;
      if (input.is_orphan) bytes += input.bytes;
      back.push_back(edge.value);
    });
  }
  return bytes;
}

// Room for every Value to become an orphan, so that note_orphan never allocates. Entries of Values that
// are gone are swept out when the room runs low, so that there are never many more than Values.
void Engine::reserve_orphans(std::size_t more) {
  const auto needed = [&] { return orphans_.size() + graph_.values().size() + more; };
  if (orphans_.capacity() >= needed()) return;
  std::erase_if(orphans_, [&](ValueId id) { return !graph_.values().contains(id); });
  if (orphans_.capacity() < 2 * needed()) orphans_.reserve(2 * needed());
}

// Between operators: lineage that costs more than it saves is ended. Orphans are looked at in turn, a few
// more than come to be, and not farther than is cheap: a Call does not cost more the more of them there
// are.
void Engine::bound_lineage() {
  // Ending a lineage may take a replay, and there is only one at a time.
  if (replaying_ != std::thread::id()) return;
  constexpr std::uint64_t kCallsPerOrphan = 16;
  constexpr std::size_t kMostWalked = 64;
  constexpr std::uint64_t kCallsPerSweep = 64;
  constexpr std::size_t kMostSwept = 1024;
  if (stats_.calls % kCallsPerOrphan == 0) ++orphan_looks_due_;
  for (; orphan_looks_due_ > 0 && !orphans_.empty(); --orphan_looks_due_) {
    end_next_orphan(kMostWalked);
  }
  orphan_looks_due_ = 0;
  const bool is_much = stats_.held_by_lineage > pool_.bytes() / 8;
  if (is_much && stats_.calls % kCallsPerSweep == 0) static_cast<void>(end_orphans(kMostSwept));
  if (graph_.hidden_count() > most_hidden() + hidden_allowed_) end_oldest_hidden();
}

std::size_t Engine::most_hidden() const {
  constexpr std::size_t kForEachOther = 4;
  const std::size_t others = graph_.calls().size() - graph_.hidden_count();
  return options_.most_hidden_calls + kForEachOther * others;
}

// Makes Sources of what the oldest hidden Calls are kept for. Some at a time, so that the walk is worth
// it. Where there is no memory for that, there may be more of them: the operator that is about to begin
// must not fail for it.
void Engine::end_oldest_hidden() {
  const std::size_t most = most_hidden();
  const std::size_t kept = most - most / 8;
  std::vector<ValueId> oldest;
  std::size_t more = graph_.hidden_count() - kept;
  for (CallId id = graph_.oldest_hidden(); id && more > 0; --more) {
    oldest.push_back(graph_.calls()[id].first_output);
    id = graph_.calls()[id].next_hidden;
  }
  const Descendants descendants = find_descendants(oldest, kNoLimit);
  hidden_allowed_ = 0;
  try {
    for (const ValueId id : descendants.current) make_sources({&id, 1});
  } catch (const OutOfMemory&) {
    hidden_allowed_ = graph_.hidden_count() - std::min(most, graph_.hidden_count()) + most / 8 + 1;
  }
}

}  // namespace coop
