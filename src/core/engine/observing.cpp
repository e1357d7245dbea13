// Whoever wants to know what is done and what is asked for.
#include <map>

#include "core/engine/engine.hpp"
#include "core/engine/entry.hpp"

namespace coop {

using Kind = EngineRequest::Kind;

void Engine::observe(EngineObserver* events, RequestObserver* requests) {
  Entry entry(*this);
  entry.wait_for_replay();
  requests_ = requests;
  try {
    if (requests_ != nullptr) tell_what_there_is();
  } catch (...) {
    requests_ = nullptr;
    throw;
  }
  options_.observer = events;
}

void Engine::watch(EngineObserver* events) {
  const std::lock_guard lock(mutex_);
  watcher_ = events;
}

std::vector<Engine::PlacedBlock> Engine::blocks() const {
  const std::lock_guard lock(mutex_);
  std::vector<PlacedBlock> all;
  all.reserve(pool_.block_count());
  for (std::uint32_t i = 0; i < value_of_.size(); ++i) {
    const BlockId block = pool_.id_of(i);
    if (pool_.contains(block)) all.push_back({block, pool_.info(block)});
  }
  return all;
}

// As if it had just come about, in the order in which it did.
void Engine::tell_what_there_is() {
  const auto tell = [&](const EngineRequest& request) { requests_->on_request(request); };
  for (std::uint32_t i = 0; i < value_of_.size(); ++i) {
    const BlockId block = pool_.id_of(i);
    if (value_of_[i] || !pool_.contains(block)) continue;
    const BlockInfo info = pool_.info(block);
    tell({.kind = Kind::kAllocate,
          .block = block,
          .bytes = info.requested_bytes,
          .lives_long = info.placement == Placement::kLongLived && !info.is_small});
  }
  std::map<std::uint64_t, StorageId> by_age;
  graph_.storages().for_each(
      [&](StorageId id, const Storage& storage) { by_age.emplace(storage.serial, id); });
  for (const auto& [serial, id] : by_age) {
    const Storage& storage = graph_.storages()[id];
    const Value& value = graph_.values()[storage.current];
    EngineRequest source{.kind = storage.is_elsewhere ? Kind::kForeignSource : Kind::kSource,
                         .block = value.block,
                         .storage = id,
                         .token = storage.token,
                         .bytes = value.bytes};
    if (!storage.is_elsewhere) {
      tell({.kind = Kind::kAllocate, .block = value.block, .bytes = value.bytes});
    }
    tell(source);
    if (storage.is_source_forever && !storage.is_elsewhere) {
      tell({.kind = Kind::kKeepInPlace, .storage = id});
    }
  }
}

}  // namespace coop
