#include "plugin/snapshot.hpp"

#include <utility>

#include "plugin/session.hpp"

namespace coop::plugin {

Snapshot Snapshot::of(Session& session) {
  Snapshot now;
  const Session::Stats own = session.stats();
  const EngineStats engine = session.engine().stats();
  const Pool& pool = session.engine().pool();
  now.evictions = session.engine().eviction_stats();
  now.by_operator = session.world().recomputed();
  const auto total = [&](const char* name, auto value) {
    now.totals.emplace(name, static_cast<std::int64_t>(value));
  };
  total("operators", own.operators);
  total("light_operators", own.light);
  total("evicted_once_bytes", session.world().bytes_evicted_once());
  total("evictions", session.world().evictions());
  total("restorations", session.world().restorations());
  total("replays", engine.replays);
  total("replay_ns", engine.replay_ns);
  total("base_ns", engine.base_ns);
  total("cuts", engine.cuts);
  total("copies_aside", engine.copies_aside);
  total("unseen_writes", engine.unseen_writes);
  total("searches", now.evictions.searches);
  total("plans", engine.plans);
  total("planned_calls", engine.planned_calls);
  total("moves", now.evictions.moves);
  total("moved_bytes", now.evictions.moved_bytes);
  total("search_ns", now.evictions.search_ns);

  for (std::size_t i = 0; i < kTaintNames.size(); ++i) {
    now.made.emplace(kTaintNames[i], static_cast<std::int64_t>(session.made().of(i)));
  }
  const auto state = [&](const char* name, auto value) {
    now.state.emplace(name, static_cast<std::int64_t>(value));
  };
  state("deepest_replay", engine.deepest_replay);
  state("held_by_lineage", engine.held_by_lineage);
  state("budget_bytes", session.options().budget);
  state("pool_bytes", pool.bytes());
  state("held_bytes", session.engine().held_bytes());
  state("peak_held_bytes", own.peak_held);
  state("storages", own.records);
  state("foreign_storages", own.foreign);
  state("raw_blocks", own.raw);
  state("at_ease", session.is_at_ease());
  state("calls", session.engine().recorded_calls());
  return now;
}

Snapshot Snapshot::since(const Snapshot& before) const {
  Snapshot result = *this;
  for (const auto& [name, value] : before.totals) result.totals[name] -= value;
  for (const auto& [why, bytes] : before.made) result.made[why] -= bytes;
  for (const auto& [name, earlier] : before.by_operator) {
    Recomputed& each = result.by_operator[name];
    each.times -= earlier.times;
    each.ns -= earlier.ns;
  }
  std::erase_if(result.by_operator, [](const auto& entry) { return entry.second.times == 0; });
  result.evictions.served -= before.evictions.served;
  result.evictions.fragmentation_sum -= before.evictions.fragmentation_sum;
  return result;
}

}  // namespace coop::plugin
