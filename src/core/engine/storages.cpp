// What the program does with storages beside calling operators, and what it may ask.
#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/entry.hpp"
#include "core/engine/told.hpp"

namespace coop {

using Kind = EngineRequest::Kind;

StorageId Engine::add_source(Token token, Bytes bytes, BlockId block) {
  return add_source_that(Lies::kInPool, token, bytes, block);
}

StorageId Engine::add_source_in_place(Token token, Bytes bytes, BlockId block) {
  return add_source_that(Lies::kInItsPlace, token, bytes, block);
}

StorageId Engine::add_source_that(Lies lies, Token token, Bytes bytes, BlockId block) {
  const Entry entry(*this);
  if (!pool_.contains(block)) throw InvalidArgument("a Source needs a block of this pool");
  const StorageId storage = add_storage(token, bytes, block, lies);
  Told told(*this, {.kind = Kind::kSource, .block = block, .token = token, .bytes = bytes});
  told.is_done(storage);
  if (lies == Lies::kInItsPlace) {
    Told(*this, {.kind = Kind::kKeepInPlace, .storage = storage}).is_done();
  }
  return storage;
}

StorageId Engine::add_foreign_source(Token token, Bytes bytes, Bytes room) {
  const Entry entry(*this);
  Told told(*this, {.kind = Kind::kForeignSource, .token = token, .bytes = room});
  const BlockId block = take_for_long(room);
  try {
    const StorageId storage = add_storage(token, bytes, block, Lies::kElsewhere);
    told.is_done(storage);
    return storage;
  } catch (...) {
    give_back(block);
    throw;
  }
}

// It throws before anything has changed, or not at all.
StorageId Engine::add_storage(Token token, Bytes bytes, BlockId block, Lies lies) {
  graph_.reserve(1, 1, 0);
  reserve_orphans(1);
  const StorageId storage = graph_.add_storage(token);
  graph_.storages()[storage].serial = ++storages_added_;
  graph_.storages()[storage].is_from_outside = true;
  graph_.storages()[storage].is_elsewhere = lies == Lies::kElsewhere;
  graph_.storages()[storage].is_source_forever = lies != Lies::kInPool;
  place(graph_.add_source(storage, bytes, {}), block);
  world_.attach(token, block);
  pool_.unpin(block);
  if (forecast_) forecast_->source_comes(use_of(storage));
  return storage;
}

Allocation Engine::allocate_memory(Bytes bytes, double cost, bool lives_long) {
  const Entry entry(*this);
  Told told(*this,
            {.kind = Kind::kAllocate, .bytes = bytes, .cost = cost, .lives_long = lives_long});
  const std::uint64_t before = evicting_.stats().making_room_ns;
  const BlockId block = lives_long ? take_for_long(bytes) : take(bytes, cost);
  told.is_done(block);
  if (forecast_ && !lives_long) {
    const BlockInfo info = pool_.info(block);
    call_memory_.allocate(block, info.bytes, info.is_small);
  }
  return {.block = block,
          .address = pool_.address(block),
          .held = pool_.held_bytes(),
          .making_room_ns = evicting_.stats().making_room_ns - before,
          .has_searched = has_searched_};
}

void Engine::free(BlockId block) noexcept {
  const Entry entry(*this);
  Told(*this, {.kind = Kind::kFree, .block = block}).is_done();
  if (forecast_) call_memory_.free(block);
  give_back(block);
}

void Engine::release(StorageId storage) noexcept {
  const Entry entry(*this);
  COOP_CHECK(graph_.storages().contains(storage));
  Told(*this, {.kind = Kind::kRelease, .storage = storage}).is_done();
  const ValueId id = graph_.storages()[storage].current;
  if (std::exchange(graph_.values()[id].is_away, false)) loss_.died(graph_.values()[id].bytes);
  if (forecast_) forecast_->storage_goes(use_of(storage));
  const bool is_kept = is_worth_keeping(storage);
  graph_.remove_storage(storage);
  if (!graph_.values().contains(id)) return;
  // Others are made from it. A Source must stay for them; anything else can be made again, and goes, unless the plan
  // has it stay, or another thread's replay is using it: that drops it when it is done.
  Value& value = graph_.values()[id];
  if (value.is_source()) {
    note_orphan(id);
    return;
  }
  value.is_kept = is_kept;
  if (is_kept) ++stats_.kept;
  if (value.is_resident() && !value.is_kept && value.wanted == 0) give_back(displace(id));
}

void Engine::make_resident(StorageId storage) {
  Entry entry(*this);
  entry.refuse_inside_replay();
  // Whoever runs an operator that another thread's replay waits for may ask for what that works on.
  if (!can_begin_at_once({&storage, 1}, {})) entry.wait_for_replay();
  Told told(*this, {.kind = Kind::kMakeResident, .storage = storage});
  std::vector<BlockId> pins;
  const ValueId target = current_of(storage);
  try {
    bring_back({&target, 1}, pins);
  } catch (...) {
    unpin_all(pins);
    throw;
  }
  unpin_all(pins);
  told.is_done();
}

void Engine::make_source(StorageId storage) {
  const ValueId value = current_of(storage);
  make_sources({&value, 1});
}

void Engine::end_lineage(StorageId storage) {
  Entry entry(*this);
  entry.wait_for_replay();
  Told told(*this, {.kind = Kind::kEndLineage, .storage = storage});
  make_source(storage);
  if (forecast_) forecast_->lineage_ends(use_of(storage));
  told.is_done();
}

void Engine::keep_in_place(StorageId storage) {
  Entry entry(*this);
  entry.wait_for_replay();
  Told told(*this, {.kind = Kind::kKeepInPlace, .storage = storage});
  make_source(storage);
  graph_.storages()[storage].is_source_forever = true;
  publish(current_of(storage));
  told.is_done();
}

std::optional<BlockId> Engine::hand_back(StorageId storage) {
  Entry entry(*this);
  entry.wait_for_replay();
  const ValueId id = current_of(storage);
  const Value& value = graph_.values()[id];
  const bool is_alone = value.is_source() && value.readers == 0 && value.holds == 0 &&
                        !graph_.storages()[storage].is_elsewhere;
  if (!is_alone || !value.is_resident() || requests_ != nullptr) return std::nullopt;
  if (forecast_) forecast_->storage_goes(use_of(storage));
  pool_.pin(value.block);
  const BlockId block = displace(id);
  graph_.remove_storage(storage);
  return block;
}

// Whoever knows the address may write there, now or later, without telling us: as if an operator of which
// we know nothing had written it. So what was made from it before is protected as for any write.
void Engine::export_storage(StorageId storage) {
  Entry entry(*this);
  entry.refuse_inside_replay();
  Told told(*this, {.kind = Kind::kExport, .storage = storage});
  const Write write{.storage = storage};
  RunningCall call = begin(entry, {}, {&write, 1});
  graph_.storages()[storage].is_source_forever = true;
  publish(current_of(storage));
  abort(call);
  told.is_done();
}

void Engine::evict_all() {
  Entry entry(*this);
  entry.wait_for_replay();
  std::vector<BlockId> victims;
  for (const Chunk* chunk : pool_.order().chunks()) {
    for (const int slot : SlotsOf(chunk->evictable())) {
      victims.push_back(pool_.id_of(chunk->block_at(slot)));
    }
  }
  static_cast<void>(keeps_some(victims));
  for (const BlockId victim : victims) {
    if (!pool_.contains(victim) || pool_.info(victim).tenure != Tenure::kEvictable) continue;
    evict(victim);
    static_cast<void>(pool_.free(victim));
  }
  Told(*this, {.kind = Kind::kEvictAll}).is_done();
}

void Engine::compact() {
  Entry entry(*this);
  entry.wait_for_replay();
  evicting_.move_all_left();
  Told(*this, {.kind = Kind::kCompact}).is_done();
}

void Engine::act_as_bound() {
  const Entry entry(*this);
  if (!has_searched_) begin_pricing();
}

bool Engine::is_resident(StorageId id) const {
  const std::lock_guard lock(mutex_);
  return graph_.values()[current_of(id)].is_resident();
}

std::byte* Engine::address(BlockId block) const {
  const std::lock_guard lock(mutex_);
  return pool_.address(block);
}

bool Engine::has_block(BlockId block) const {
  const std::lock_guard lock(mutex_);
  return pool_.contains(block);
}

Bytes Engine::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return pool_.held_bytes();
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

EvictionStats Engine::eviction_stats() const {
  const std::lock_guard lock(mutex_);
  return evicting_.stats();
}

std::size_t Engine::recorded_calls() const {
  const std::lock_guard lock(mutex_);
  return graph_.calls().size();
}

MemoryReport Engine::report() const {
  const std::lock_guard lock(mutex_);
  return report_memory(pool_, 0, *this);
}

Loss Engine::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_.loss(pool_.bytes(), patience_.recorded());
}

void Engine::begin_loss_anew() {
  const std::lock_guard lock(mutex_);
  loss_.begin_anew();
}

double Engine::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

}  // namespace coop
