// Blocks, what they hold, and what it would cost to lose it.
#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/engine/engine.hpp"
#include "core/lineage/missing.hpp"

namespace coop {

// --- taking and giving back ---

// A storage of 0 bytes has a place too.
BlockId Engine::take(Bytes bytes, double cost) {
  bytes = std::max<Bytes>(bytes, 1);
  const bool is_cheap = policy_.traits().keeps_cheap_apart && density_.is_cheap(cost, bytes);
  const Placement placement = is_cheap ? Placement::kCheap : Placement::kExpensive;
  const Request request{bytes, placement, now_};
  const auto planned = take_planned(request);
  return pin_taken(planned ? *planned : take_or_end_orphans(request));
}

BlockId Engine::take_for_long(Bytes bytes) {
  return pin_taken(take_or_end_orphans({std::max<Bytes>(bytes, 1), Placement::kLongLived, now_}));
}

BlockId Engine::pin_taken(BlockId block) {
  if (block.index() >= value_of_.size()) {
    try {
      value_of_.resize(std::size_t{block.index()} + 1);
    } catch (...) {
      static_cast<void>(pool_.free(block));
      throw;
    }
  }
  value_of_[block.index()] = {};
  pool_.pin(block);
  if (is_observed()) tell(about(EngineEvent::Kind::kAllocated, block));
  return block;
}

// They may move meanwhile, but must not go. Sources do not go anyway.
void Engine::make_room_beside(std::span<const ValueId> values, Bytes bytes) {
  for (const ValueId id : values) {
    const Value& value = graph_.values()[id];
    if (!value.is_source()) pool_.set_tenure(value.block, Tenure::kMovable);
  }
  const auto let_go = [&]() noexcept {
    for (const ValueId id : values) {
      const Value& value = graph_.values()[id];
      if (!value.is_target && value.is_resident()) publish(id);
    }
  };
  try {
    give_back(take(bytes));
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
}

// What is only there for lineage is the last resort.
BlockId Engine::take_or_end_orphans(const Request& request) {
  for (;;) {
    try {
      return evicting_.allocate(request);
    } catch (const OutOfMemory&) {
      if (end_all_orphans()) continue;
      if (is_observed()) tell({.kind = EngineEvent::Kind::kOutOfMemory, .bytes = request.bytes});
      throw;
    }
  }
}

void Engine::give_back(BlockId block) noexcept {
  if (is_observed()) tell(about(EngineEvent::Kind::kFreed, block));
  const bool was_there = pool_.free(block);
  COOP_CHECK(was_there);
}

void Engine::pin(BlockId block, std::vector<BlockId>& pins) {
  pins.push_back(block);
  pool_.pin(block);
}

void Engine::unpin_all(std::vector<BlockId>& pins) noexcept {
  for (const BlockId block : pins) {
    if (pool_.contains(block)) pool_.unpin(block);
  }
  pins.clear();
}

// --- what a block holds ---

// The Value's contents are in this block from now on. Pins stay as they are.
void Engine::place(ValueId id, BlockId block) noexcept {
  leave_region(id);
  Value& value = graph_.values()[id];
  if (std::exchange(value.is_away, false)) loss_.came_back(value.bytes);
  value.block = block;
  value_of_[block.index()] = id;
  publish(id);
  if (is_observed()) tell(about(EngineEvent::Kind::kPlaced, block, id));
}

// Takes the Value's block away from it. What is in it, and whose it is, is up to the caller.
BlockId Engine::displace(ValueId id) noexcept {
  Value& value = graph_.values()[id];
  const BlockId block = value.block;
  value.block = {};
  value_of_[block.index()] = {};
  enter_region(id);
  return block;
}

void Engine::evict(BlockId block) {
  const ValueId id = value_of_[block.index()];
  COOP_CHECK(id);
  const Value& value = graph_.values()[id];
  COOP_CHECK(value.block == block && !value.is_source());
  if (is_observed()) {
    tell(about(EngineEvent::Kind::kEvicted, block, id));
    tell(about(EngineEvent::Kind::kFreed, block));
  }
  if (value.is_current) {
    world_.detach(graph_.storages()[value.storage].token);
    graph_.values()[id].is_away = true;
    loss_.evicted(value.bytes);
  }
  displace(id);
}

void Engine::relocate(BlockId block, Bytes from, Bytes to, Bytes bytes) {
  const ValueId id = value_of_[block.index()];
  COOP_CHECK(id);
  const Value& value = graph_.values()[id];
  const Token* token = value.is_current ? &graph_.storages()[value.storage].token : nullptr;
  world_.relocate(token, block, from, to, bytes);
  if (!is_observed()) return;
  EngineEvent event = about(EngineEvent::Kind::kMoved, block, id);
  event.from = from;
  event.offset = to;
  tell(event);
}

// Nobody has measured it. A copy reads a byte and writes it, and there are few operators that do less: it
// takes about as long as the cheapest of them do.
double Engine::copy_ns_per_byte() const {
  constexpr double kCheapest = 0.15;
  return std::max(kCopyNsPerByte, recorded_density_.quantile(kCheapest));
}

void Engine::value_goes(ValueId id, const Value& value) noexcept {
  if (value.is_away) loss_.died(value.bytes);
  if (value.is_orphan) stats_.held_by_lineage -= value.bytes;
  leave_region(id);
  if (!value.is_resident()) return;
  value_of_[value.block.index()] = {};
  give_back(value.block);
}

void Engine::call_goes(CallId /*id*/, const Call& call) noexcept {
  patience_.forget(call.cost);
  forgotten_.push_back(call.token);  // end_call has made room for it
}

// --- what it would cost ---

// To make it again, with what is evicted around it: what it is made from would have to come first, and what
// is made from it cannot come back without it. What would need more room than there is once gradients and an
// optimizer's state are all there goes last: it could not come back then. (A network whose first and last layer
// share their weights adds up their gradients at the very end, and the last layer's is made from logits.)
double Engine::cost_of(const Value& value, Asked asked) noexcept {
  const double own = graph_.calls()[value.producer].cost;
  if (!has_searched_) return own;
  if (!keeps_regions()) {
    if (asked == Asked::kInAdvance && is_pricing_put_off()) return own;
    const Missing missing = missing_around(graph_, value, ++walks_begun_);
    constexpr double kNoWayBack = 1e3;
    return (own + missing.cost) * (missing.widest > least_room_ ? kNoWayBack : 1);
  }
  EvictedRegions::Sum around(regions_);
  graph_.for_each_neighbour(value, [&](const Value& other) { around.add(other.region); });
  return own + around.cost();
}

// Looking around costs more than an operator's whole record. Whoever has looked as often as there are Values, and no
// search has asked for any of it, waits for one that does: it looks at all of them anyway. Where a plan is followed,
// searches are few.
bool Engine::is_pricing_put_off() noexcept {
  const bool is_planned = forecast_ && forecast_->plan() != nullptr;
  if (!is_planned && ++priced_since_search_ <= graph_.values().size()) return false;
  have_costs_fallen_ = true;
  return true;
}

// Tells the pool what may become of the Value's block, which is used now.
void Engine::publish(ValueId id) noexcept {
  const Value& value = graph_.values()[id];
  if (value.is_source()) {
    // What has no contents in the pool can be moved at no cost.
    const bool is_exported = value.is_current &&
                             graph_.storages()[value.storage].is_source_forever &&
                             !graph_.storages()[value.storage].is_elsewhere;
    pool_.set_tenure(value.block, is_exported ? Tenure::kStays : Tenure::kMovable);
  } else {
    pool_.set_evictable(value.block, asking_price(value, Asked::kInAdvance), now_);
  }
}

// Tells the pool what the Value costs by now. True if that is news.
bool Engine::reprice(ValueId id, Asked asked) noexcept {
  const Value& value = graph_.values()[id];
  if (value.is_source()) return false;
  bool is_news = false;
  if (value.wanted > 0 && is_replay_in_circles_) {
    is_news = pool_.info(value.block).last_use < now_;
    pool_.touch(value.block, now_);
  }
  return pool_.set_cost(value.block, asking_price(value, asked)) || is_news;
}

// What a running replay is still going to read is the last to go, the more so the sooner it is read. So is what
// costs several times as much as all of the replay: a gradient that waits while activations are brought back is
// the end of a backward pass, and that would have to be run again for it. (Policies as published do without.)
// Where that does not help and the replay runs in circles, nothing else counts any more: were the next to be read
// to go for what is read later, it would never end.
double Engine::asking_price(const Value& value, Asked asked) noexcept {
  constexpr double kWanted = 1e3;
  constexpr double kWantedNow = 1e6;
  constexpr double kMuchDearer = 2;
  if (value.wanted == 0) {
    const double cost = cost_of(value, asked);
    const bool stays = !keeps_regions() && cost > kMuchDearer * replay_cost_;
    return stays ? kWantedNow * cost : cost;
  }
  constexpr double kAllThatCounts = 1e15;
  const std::uint64_t calls_until = value.wanted_by - std::min(value.wanted_by, replay_at_);
  const double distance = static_cast<double>(calls_until) + 1;
  const double nearness = 1 / (distance * distance);
  if (is_replay_in_circles_) return kAllThatCounts * nearness;
  return cost_of(value, asked) * (kWanted + kWantedNow * nearness);
}

void Engine::enter_region(ValueId id) noexcept {
  Value& value = graph_.values()[id];
  if (!has_searched_ || !keeps_regions() || value.is_source()) return;
  value.region = regions_.add(graph_.calls()[value.producer].cost);
  graph_.for_each_neighbour(value,
                            [&](const Value& other) { regions_.join(value.region, other.region); });
}

// Until something must be evicted, nobody asks what it would cost.
void Engine::begin_pricing() {
  has_searched_ = true;
  graph_.values().for_each([&](ValueId id, const Value& value) {
    if (!value.is_resident()) enter_region(id);
  });
  begin_forecast();
  have_costs_fallen_ = true;
}

void Engine::leave_region(ValueId id) noexcept {
  Value& value = graph_.values()[id];
  if (!value.region) return;
  regions_.leave(value.region, graph_.calls()[value.producer].cost);
  value.region = {};
  have_costs_fallen_ = true;
}

bool Engine::keeps_regions() const {
  return policy_.traits().surroundings == Surroundings::kRegions;
}

void Engine::prepare_search() {
  if (!has_searched_) begin_pricing();
  priced_since_search_ = 0;
  if (!have_costs_fallen_) return;
  have_costs_fallen_ = false;
  for (const Chunk* chunk : pool_.order().chunks()) {
    for (const int slot : SlotsOf(chunk->evictable())) {
      reprice(value_of_[chunk->block_at(slot)], Asked::kBySearch);
    }
  }
}

bool Engine::correct_costs(std::span<const BlockId> victims) {
  bool is_news = false;
  for (const BlockId block : victims) {
    is_news |= reprice(value_of_[block.index()], Asked::kBySearch);
  }
  return is_news;
}

// Whoever has written contents unseen knows their address, and may do it again.
bool Engine::keeps_some(std::span<const BlockId> victims) noexcept {
  bool has_kept = false;
  for (const BlockId block : victims) {
    if (!pool_.contains(block)) continue;  // it was only there for one that is kept
    const ValueId id = value_of_[block.index()];
    const Value& value = graph_.values()[id];
    if (!value.is_current) continue;
    Storage& storage = graph_.storages()[value.storage];
    if (world_.is_as_made(storage.token)) continue;
    storage.is_source_forever = true;
    cut(id);
    ++stats_.unseen_writes;
    has_kept = true;
  }
  return has_kept;
}

// --- who is told, and who tells ---

Token Engine::token_of(ValueId id) const noexcept {
  if (!id) return 0;
  const Value& value = graph_.values()[id];
  return value.is_current ? graph_.storages()[value.storage].token : 0;
}

LargeBlock Engine::witness(BlockId block, const BlockInfo& info) const {
  const ValueId id = value_of_[block.index()];
  LargeBlock found{.holder = Holder::kSource, .bytes = info.bytes, .storage = token_of(id)};
  if (id) {
    const Value& value = graph_.values()[id];
    found.is_lasting = value.is_source() && value.is_current && !value.is_being_written;
  }
  if (info.pins > 0) {
    found.holder = id ? Holder::kInput : Holder::kBeingMade;
  } else if (id && graph_.values()[id].is_orphan) {
    found.holder = Holder::kLineage;
  } else if (id && graph_.values()[id].is_current &&
             graph_.storages()[graph_.values()[id].storage].is_elsewhere) {
    found.holder = Holder::kElsewhere;
  } else if (info.tenure == Tenure::kStays) {
    found.holder = Holder::kExported;
  }
  return found;
}

EngineEvent Engine::about(EngineEvent::Kind kind, BlockId block, ValueId id) const noexcept {
  const BlockInfo info = pool_.info(block);
  return {.kind = kind,
          .block = block,
          .offset = info.offset,
          .bytes = info.bytes,
          .token = token_of(id),
          .is_source = id && graph_.values()[id].is_source(),
          .cost = static_cast<double>(info.cost)};
}

void Engine::tell(EngineEvent event) noexcept {
  event.now = now_;
  for (EngineObserver* each : {options_.observer, watcher_}) {
    if (each != nullptr) each->on_event(event);
  }
}

}  // namespace coop
