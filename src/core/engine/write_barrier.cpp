// Writes, and everything that ends a lineage.
#include <algorithm>

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
      bool is_in_use = false;
      const std::vector<ValueId> descendants = current_descendants(write.before, &is_in_use);
      if (descendants.empty() && !is_in_use) continue;
      write.aside = is_in_use ? copy_aside(write.before) : protect(descendants, write.before);
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
      write.fresh = allocate(before.bytes);
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
  Value& before = graph_.values()[write.before];
  const Bytes bytes = before.bytes;
  const BlockId block = write.fresh ? write.fresh : before.block;
  if (write.fresh) world_.attach(graph_.storages()[write.storage].token, block);
  // The block goes on to the next version; what stays of this one is the copy, if there is one.
  before.block = {};
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
  const BlockId aside = allocate(bytes);
  try {
    world_.copy(graph_.values()[source].block, aside, bytes);
  } catch (...) {
    free(aside);
    throw;
  }
  ++stats_.copies_aside;
  return aside;
}

// The nearest current Values that are made from this one, directly or through past ones.
// `is_in_use`: whether some of those past ones are being overwritten by operators that run, which
// may yet be recorded as made from them, or fail and need them back. They cannot be made Sources.
std::vector<ValueId> Engine::current_descendants(ValueId value, bool* is_in_use) {
  const std::uint64_t walk = ++walks_begun_;
  std::vector<ValueId> found;
  std::vector<ValueId> through{value};
  while (!through.empty()) {
    const ValueId id = through.back();
    through.pop_back();
    graph_.for_each_reader(graph_.values()[id], [&](const Edge& edge) {
      graph_.for_each_output(graph_.calls()[edge.call], [&](ValueId output, const Value& made) {
        if (made.seen_by == walk) return;
        graph_.values()[output].seen_by = walk;
        if (is_in_use != nullptr && !made.is_current && made.holds > 0) *is_in_use = true;
        (made.is_current ? found : through).push_back(output);
      });
    });
  }
  return found;
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
}

// An orphan that takes room for the sake of Values that are smaller than it is goes: those are kept
// instead.
bool Engine::is_orphan_worth_keeping(ValueId orphan) {
  if (!graph_.values().contains(orphan)) return false;
  const std::vector<ValueId> descendants = current_descendants(orphan);
  Bytes bytes = 0;
  for (const ValueId id : descendants) {
    if (!graph_.values()[id].is_resident()) return true;
    bytes += graph_.values()[id].bytes;
  }
  if (bytes > graph_.values()[orphan].bytes) return true;
  make_sources(descendants);
  return graph_.values().contains(orphan);
}

// Room for every Value to become an orphan, so that note_orphan never allocates. Entries of Values that
// are gone are swept out when the room runs low, so that there are never many more than Values.
void Engine::reserve_orphans(std::size_t more) {
  const auto needed = [&] { return orphans_.size() + graph_.values().size() + more; };
  if (orphans_.capacity() >= needed()) return;
  std::erase_if(orphans_, [&](ValueId id) { return !graph_.values().contains(id); });
  if (orphans_.capacity() < 2 * needed()) orphans_.reserve(2 * needed());
}

// Between operators: lineage that costs more than it saves is ended. A few orphans are looked at each
// time, in turn, so that a Call does not cost more the more of them there are.
void Engine::bound_lineage() {
  constexpr std::size_t kOrphansPerCall = 4;
  for (std::size_t n = std::min(kOrphansPerCall, orphans_.size()); n > 0; --n) {
    if (next_orphan_ >= orphans_.size()) next_orphan_ = 0;
    if (is_orphan_worth_keeping(orphans_[next_orphan_])) {
      ++next_orphan_;
    } else {
      orphans_[next_orphan_] = orphans_.back();
      orphans_.pop_back();
    }
  }
  while (graph_.hidden_count() > options_.most_hidden_calls) {
    const Call& oldest = graph_.calls()[graph_.oldest_hidden()];
    const std::vector<ValueId> descendants = current_descendants(oldest.first_output);
    if (descendants.empty()) break;
    try {
      make_sources(descendants);
    } catch (const OutOfMemory&) {
      break;  // another time: want of room for this is no reason for an operator not to run
    }
  }
}

}  // namespace coop
