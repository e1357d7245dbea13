// Writes, and everything that ends a lineage.
#include <algorithm>
#include <limits>

#include "core/base/check.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/replay.hpp"

namespace coop {
namespace {

// Against recomputation: a copy within a device moves about a byte per thousandth of a nanosecond.
constexpr double kCopyNsPerByte = 0.0005;

}  // namespace

// Everything about writes that can fail, before anything is changed.
void Engine::prepare_writes(std::span<const Write> writes, RunningCall& call) {
  for (const Write& write : writes) {
    call.writes.push_back({.storage = write.storage,
                           .before = current_of(write.storage),
                           .reads_old = write.reads_old});
  }
  // Protecting what is made from one Source may make a Source of what another write overwrites, and
  // then what is made from that has to be protected too.
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (RunningCall::Written& write : call.writes) {
      if (write.aside || !graph_.values()[write.before].is_source()) continue;
      const std::vector<ValueId> descendants = current_descendants(write.before);
      if (descendants.empty()) continue;
      write.aside = protect(descendants, write.before);
      is_settled = false;
    }
  }
  call.pins.reserve(call.pins.size() + writes.size());
  for (RunningCall::Written& write : call.writes) {
    const Value& before = graph_.values()[write.before];
    if (before.is_resident()) {
      pin(before.block, call.pins);
    } else {
      // Evicted, and about to be overwritten: it needs memory, not its contents.
      write.fresh = take(before.bytes);
      call.pins.push_back(write.fresh);
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
  if (graph_.storages()[write.storage].is_source_forever) pool_.set_tenure(block, Tenure::kStays);
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
    BlockId aside;
    try {
      aside = take(graph_.values()[source].bytes);
    } catch (const OutOfMemory&) {
      aside = {};
    }
    if (aside) {
      try {
        world_.copy(graph_.values()[source].block, aside, graph_.values()[source].bytes);
      } catch (...) {
        give_back(aside);
        throw;
      }
      ++stats_.copies_aside;
      if (is_observed()) tell(about(EngineEvent::Kind::kCopiedAside, aside, source));
      return aside;
    }
  }
  make_sources(descendants);
  return {};
}

// The nearest current Values that are made from these, directly or through past ones. None if there are
// more than `most` Values to look at.
std::optional<std::vector<ValueId>> Engine::current_descendants(std::span<const ValueId> values,
                                                                std::size_t most) {
  const std::uint64_t walk = ++walks_begun_;
  std::vector<ValueId> found;
  std::vector<ValueId> through(values.begin(), values.end());
  std::size_t seen = 0;
  while (!through.empty()) {
    const ValueId id = through.back();
    through.pop_back();
    graph_.for_each_reader(graph_.values()[id], [&](const Edge& edge) {
      graph_.for_each_output(graph_.calls()[edge.call], [&](ValueId output, const Value& made) {
        if (++seen > most || made.seen_by == walk) return;
        graph_.values()[output].seen_by = walk;
        (made.is_current ? found : through).push_back(output);
      });
    });
    if (seen > most) return std::nullopt;
  }
  return found;
}

std::vector<ValueId> Engine::current_descendants(ValueId value) {
  return *current_descendants({&value, 1}, std::numeric_limits<std::size_t>::max());
}

void Engine::make_sources(std::span<const ValueId> values) {
  std::vector<BlockId> pins;
  try {
    bring_back(values, pins);
  } catch (...) {
    unpin_all(pins);
    throw;
  }
  for (const ValueId id : values) {
    if (graph_.values()[id].is_source()) continue;
    graph_.cut(id);
    publish(id);
    if (is_observed()) tell(about(EngineEvent::Kind::kCut, graph_.values()[id].block, id));
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
  const auto descendants = current_descendants({&orphan, 1}, most_walked);
  if (!descendants) return true;
  Bytes bytes = 0;
  for (const ValueId id : *descendants) {
    if (!graph_.values()[id].is_resident()) return true;
    bytes += graph_.values()[id].bytes;
  }
  if (bytes > graph_.values()[orphan].bytes) return true;
  make_sources(*descendants);
  return graph_.values().contains(orphan);
}

// Looks at the next orphan; true if it could go.
bool Engine::end_next_orphan(std::size_t most_walked) {
  if (next_orphan_ >= orphans_.size()) next_orphan_ = 0;
  if (is_orphan_worth_keeping(orphans_[next_orphan_], most_walked)) {
    ++next_orphan_;
    return false;
  }
  orphans_[next_orphan_] = orphans_.back();
  orphans_.pop_back();
  return true;
}

// Memory is short: what is only there for lineage is looked at more closely.
bool Engine::end_orphans() {
  const Bytes before = stats_.held_by_lineage;
  for (std::size_t n = orphans_.size(); n > 0; --n) {
    static_cast<void>(end_next_orphan(std::numeric_limits<std::size_t>::max()));
  }
  return stats_.held_by_lineage < before;
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
  constexpr std::uint64_t kCallsPerOrphan = 16;
  constexpr std::size_t kMostWalked = 64;
  if (stats_.calls % kCallsPerOrphan == 0) ++orphan_looks_due_;
  for (; orphan_looks_due_ > 0 && !orphans_.empty(); --orphan_looks_due_) {
    static_cast<void>(end_next_orphan(kMostWalked));
  }
  orphan_looks_due_ = 0;
  if (graph_.hidden_count() > most_hidden_) end_oldest_hidden();
}

// Makes Sources of what the oldest hidden Calls are kept for. Some at a time, so that the walk is worth
// it. Where there is no memory for that, there may be more of them: the operator that is about to begin
// must not fail for it.
void Engine::end_oldest_hidden() {
  const std::size_t kept = options_.most_hidden_calls - options_.most_hidden_calls / 8;
  std::vector<ValueId> oldest;
  std::size_t more = graph_.hidden_count() - kept;
  for (CallId id = graph_.oldest_hidden(); id && more > 0; --more) {
    oldest.push_back(graph_.calls()[id].first_output);
    id = graph_.calls()[id].next_hidden;
  }
  const auto descendants = current_descendants(oldest, std::numeric_limits<std::size_t>::max());
  most_hidden_ = options_.most_hidden_calls;
  try {
    for (const ValueId id : *descendants) make_sources({&id, 1});
  } catch (const OutOfMemory&) {
    most_hidden_ = graph_.hidden_count() + options_.most_hidden_calls / 8 + 1;
  }
}

}  // namespace coop
