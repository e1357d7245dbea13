// Lineage that costs more than it saves is ended.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/engine/engine.hpp"

namespace coop {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace

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
bool Engine::end_orphans(std::span<const ValueId> orphans, std::size_t most_walked,
                         Evicted evicted) {
  const Bytes before = stats_.held_by_lineage;
  for (const ValueId id : find_descendants(orphans, most_walked).current) {
    if (!graph_.values().contains(id)) continue;
    const Value& value = graph_.values()[id];
    if (!value.is_resident() && evicted == Evicted::kStay) continue;
    if (orphaned_bytes_behind(id) > value.bytes) make_sources({&id, 1});
  }
  return stats_.held_by_lineage < before;
}

// When there is no memory left.
bool Engine::end_all_orphans() {
  std::erase_if(orphans_, [&](ValueId id) { return !graph_.values().contains(id); });
  return end_orphans(orphans_, kNoLimit, Evicted::kStay);
}

// Where there is nothing but orphans, and they go: what they are kept for is there, and is kept instead. That cannot go any
// more, so it must not be much more than what becomes free. True if all of it has become free.
bool Engine::end_orphans_between(Bytes begin, Bytes end) {
  constexpr std::size_t kMostWalked = 1024;
  std::vector<ValueId> orphans;
  const AddressOrder& order = pool_.order();
  bool can_go = true;
  for_each_piece(order, {to_grains(begin), to_grains(end)}, [&](const Chunk& chunk, int slot) {
    if (chunk.is_hole(slot)) return;
    const std::uint32_t block = chunk.block_at(slot);
    const ValueId id = block < value_of_.size() ? value_of_[block] : ValueId{};
    can_go = can_go && id && graph_.values()[id].is_orphan && graph_.values()[id].holds == 0;
    if (can_go) orphans.push_back(id);
  });
  if (!can_go) return false;
  const Descendants descendants = find_descendants(orphans, kMostWalked);
  if (!descendants.are_all || descendants.are_in_use) return false;
  Bytes kept = 0;
  for (const ValueId id : descendants.current) {
    if (!graph_.values()[id].is_resident()) return false;
    kept += graph_.values()[id].bytes;
  }
  Bytes freed = 0;
  for (const ValueId id : orphans) freed += graph_.values()[id].bytes;
  if (kept > freed + (end - begin)) return false;
  make_sources(descendants.current);
  return std::none_of(orphans.begin(), orphans.end(),
                      [&](ValueId id) { return graph_.values().contains(id); });
}

// Some at a time, and what they are kept for is brought back for it, while there is memory.
void Engine::end_some_orphans() {
  constexpr std::size_t kMostSwept = 64;
  constexpr std::size_t kMostWalked = 1024;
  std::erase_if(orphans_, [&](ValueId id) { return !graph_.values().contains(id); });
  const std::size_t swept = std::min(kMostSwept, orphans_.size());
  const std::vector<ValueId> some(orphans_.begin(),
                                  orphans_.begin() + static_cast<std::ptrdiff_t>(swept));
  std::rotate(orphans_.begin(), orphans_.begin() + static_cast<std::ptrdiff_t>(swept),
              orphans_.end());
  try {
    static_cast<void>(end_orphans(some, kMostWalked, Evicted::kComeBack));
  } catch (const OutOfMemory&) {  // NOLINT(bugprone-empty-catch): the operator must not fail for it
  }
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
  if (stats_.calls % kCallsPerOrphan == 0) ++orphan_looks_due_;
  for (; orphan_looks_due_ > 0 && !orphans_.empty(); --orphan_looks_due_) {
    end_next_orphan(kMostWalked);
  }
  orphan_looks_due_ = 0;
  const bool is_much = stats_.held_by_lineage > pool_.bytes() / 8;
  held_when_swept_ = std::min(held_when_swept_, stats_.held_by_lineage);
  const bool is_more = stats_.held_by_lineage > held_when_swept_ + pool_.bytes() / 16;
  if (is_much && (is_more || stats_.calls % kCallsPerSweep == 0)) {
    end_some_orphans();
    held_when_swept_ = stats_.held_by_lineage;
  }
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
