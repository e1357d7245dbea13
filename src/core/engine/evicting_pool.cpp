#include "core/engine/evicting_pool.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/engine/compaction.hpp"

namespace coop {

std::uint64_t steady_clock_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

EvictingPool::EvictingPool(Pool& pool, Policy& policy, BlockOwner& owner, WallClock clock)
    : pool_(pool), policy_(policy), owner_(owner), clock_(clock) {
  if (pool.ignores_addresses() && policy.needs_addresses()) {
    throw InvalidArgument("policy '" + std::string(policy.traits().name) +
                          "' evicts neighbours in the pool; without addresses there are none");
  }
}

BlockId EvictingPool::allocate(const Request& request) {
  if (!std::isfinite(request.now)) throw InvalidArgument("the time of a request must be finite");
  // To the pool this is a senseless request; to a program it is one that does not fit its budget.
  if (request.bytes > pool_.bytes()) {
    pool_.trim();
    throw OutOfMemory(report_memory(pool_, request.bytes, owner_));
  }
  if (is_telling_owner_) {
    throw InvalidArgument("memory cannot be allocated while its owner is told of an eviction");
  }
  const auto id = pool_.allocate(request.bytes, request.placement);
  ++stats_.allocations;
  if (id) return *id;
  const std::uint64_t began = clock_();
  const auto made_room_for = make_room_and_allocate(request);
  if (!made_room_for) throw OutOfMemory(report_memory(pool_, request.bytes, owner_));
  stats_.making_room_ns += clock_() - began;
  return *made_room_for;
}

std::optional<BlockId> EvictingPool::allocate_at(const Request& request, Bytes offset) {
  const auto id = pool_.allocate_at(request.bytes, offset, request.placement);
  if (id) ++stats_.allocations;
  return id;
}

std::optional<BlockId> EvictingPool::make_room_and_allocate(const Request& request) {
  if (const auto id = evict_or_compact(request)) return id;
  return move_out_for(request) ? serve(request) : std::nullopt;
}

std::optional<BlockId> EvictingPool::evict_or_compact(const Request& request) {
  ++stats_.searches;
  // Every round frees a block. More rounds than blocks: an owner who adds to them, against the rules.
  std::size_t rounds_left = pool_.block_count() + 1;
  for (;;) {
    COOP_CHECK(rounds_left > 0);
    --rounds_left;
    const auto compaction = choose_victims(request);
    const bool has_compacted = compaction && compact(request, *compaction);
    if (!has_compacted && victims_.empty()) return std::nullopt;
    if (!compaction) {
      for (const BlockId victim : victims_) evict(victim);
    }
    if (const auto id = serve(request)) return id;
    COOP_CHECK(!has_compacted);  // sliding makes room for certain
  }
}

// If there is room by now.
std::optional<BlockId> EvictingPool::serve(const Request& request) {
  const std::uint64_t began = clock_();
  const auto id = pool_.allocate(request.bytes, request.placement);
  stats_.search_ns += clock_() - began;
  if (!id) return std::nullopt;
  ++stats_.served;
  stats_.fragmentation_sum +=
      static_cast<double>(pool_.free_bytes()) / static_cast<double>(pool_.bytes());
  return id;
}

// Costs that are out of date are nearly always too low (more is evicted by now): victims whose costs turn
// out right are the best there are. Each round corrects a cost, and after a few it is good enough. What is
// returned: where to compact rather than to evict them.
std::optional<Compaction> EvictingPool::choose_victims(const Request& request) {
  constexpr int kMostCorrections = 64;
  const std::uint64_t began = clock_();
  owner_.prepare_search();
  for (int round = 0;; ++round) {
    victims_.clear();
    policy_.choose_victims(pool_, request, victims_);
    const bool is_good = round >= kMostCorrections || !owner_.correct_costs(victims_);
    if (is_good && !owner_.keeps_some(victims_)) break;
  }
  auto compaction = pool_.ignores_addresses() ? std::nullopt : cheaper_than_victims(request);
  stats_.search_ns += clock_() - began;
  return compaction;
}

template <typename Message>
void EvictingPool::tell_owner(Message&& message) {
  is_telling_owner_ = true;
  try {
    message();
  } catch (...) {
    is_telling_owner_ = false;
    throw;
  }
  is_telling_owner_ = false;
}

void EvictingPool::evict(BlockId id) {
  COOP_CHECK(pool_.contains(id));  // a policy names blocks that are there, and names them once
  const BlockInfo block = pool_.info(id);
  COOP_CHECK(block.tenure == Tenure::kEvictable && block.pins == 0);
  tell_owner([&] { owner_.evict(id); });
  const bool was_there = pool_.free(id);
  COOP_CHECK(was_there);
  ++stats_.evictions;
  stats_.evicted_bytes += block.bytes;
  stats_.evicted_cost += static_cast<double>(block.cost);
}

// Note [Moving instead of evicting]
//
// Blocks come to lie where there is room when they are made. Some can be recomputed then and cannot later:
// gradients, what an optimizer keeps. Those cut the pool into pieces in which nothing large fits, however much
// is free, and then the same few large blocks push each other out again and again. So before victims go it is
// asked what it would cost to push blocks together. Where enough is free, that loses nothing. Else some go,
// none of them dear, and all others are moved: what a replay is about to read, in the first place.
//
// It must cost much less than to bring the victims back. What a copy takes is a guess; not all victims will
// come back; and what they leave serves the next request, too.
std::optional<Compaction> EvictingPool::cheaper_than_victims(const Request& request) const {
  constexpr double kMuchCheaper = 8;
  if (victims_.empty()) {
    return find_compaction(request, {.copy_ns_per_byte = owner_.copy_ns_per_byte()});
  }
  if (!policy_.traits().moves_blocks) return std::nullopt;
  double cost = 0;
  double score = 0;
  for (const BlockId victim : victims_) {
    const BlockInfo block = pool_.info(victim);
    cost += static_cast<double>(block.cost);
    score += static_cast<double>(block.cost) / std::max(1.0, request.now - block.last_use);
  }
  CompactionTerms terms{.copy_ns_per_byte = owner_.copy_ns_per_byte(),
                        .usual_staleness = cost / score,
                        .now = request.now,
                        .dear = 0,
                        .most = cost / kMuchCheaper};
  std::optional<Compaction> best;
  if (pool_.free_bytes() >= request.bytes) best = find_compaction(request, terms);
  // What lives long has victims where it belongs, even if others are cheaper today.
  if (request.placement == Placement::kLongLived) return best;
  terms.dear = terms.most;
  if (best) terms.most = best->stretch.cost;
  const auto with_victims = find_compaction(request, terms);
  return with_victims ? with_victims : best;
}

std::optional<Compaction> EvictingPool::find_compaction(const Request& request,
                                                        const CompactionTerms& terms) const {
  const auto stretch = find_stretch_to_compact(pool_, to_grains(request.bytes), terms);
  if (!stretch) return std::nullopt;
  return Compaction{terms, *stretch};
}

bool EvictingPool::compact(const Request& request, const Compaction& compaction) {
  const CompactionTerms& terms = compaction.terms;
  std::optional<Compaction> now = compaction;
  std::vector<BlockId> evictable;
  std::vector<BlockId> evicted;
  std::vector<BlockId> moved;
  for (;;) {
    for_each_piece(pool_.order(), now->stretch.extent, [&](const Chunk& chunk, int slot) {
      if (chunk.is_hole(slot)) return;
      const BlockId id = pool_.id_of(chunk.block_at(slot));
      (terms.evicts(chunk.facts(slot)) ? evicted : moved).push_back(id);
      if (!chunk.is_fixed(slot)) evictable.push_back(id);
    });
    if (!owner_.keeps_some(evictable)) break;
    now = find_compaction(request, terms);
    if (!now) return false;
    evictable.clear();
    evicted.clear();
    moved.clear();
  }
  for (const BlockId id : evicted) evict(id);
  move_left(moved);
  return true;
}

// In address order.
void EvictingPool::move_left(std::span<const BlockId> blocks) {
  const Bytes moved_before = stats_.moved_bytes;
  for (const BlockId id : blocks) move_left(id);
  stats_.moving_ns +=
      static_cast<double>(stats_.moved_bytes - moved_before) * owner_.copy_ns_per_byte();
}

void EvictingPool::move_left(BlockId id) {
  const auto target = pool_.slide_target(id);
  if (!target) return;  // at the left end already
  copy_to(id, *target);
  pool_.slide_left(id);
}

void EvictingPool::copy_to(BlockId id, Bytes offset) {
  const BlockInfo block = pool_.info(id);
  tell_owner([&] { owner_.relocate(id, block.offset, offset, block.bytes); });
  ++stats_.moves;
  stats_.moved_bytes += block.bytes;
}

// What may not move, a slab that is in use, leaves a hole before it; what lies behind it goes there as far as it
// fits, the largest first.
void EvictingPool::move_all_left() {
  std::vector<BlockId> blocks = movable_blocks();
  for (const BlockId id : blocks) move_left(id);
  std::vector<Extent> holes;
  for (const Chunk* chunk : pool_.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      if (chunk->is_hole(slot)) holes.push_back(chunk->extent(slot));
    }
  }
  if (holes.size() < 2) return;  // behind the last there is nothing
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](BlockId a, BlockId b) { return pool_.info(a).bytes > pool_.info(b).bytes; });
  for (const BlockId id : blocks) {
    const BlockInfo block = pool_.info(id);
    const auto hole = std::find_if(holes.begin(), holes.end(), [&](const Extent& each) {
      return to_bytes(each.size()) >= block.bytes && to_bytes(each.begin) < block.offset;
    });
    if (hole == holes.end()) continue;
    const auto place = pool_.allocate_at(block.bytes, to_bytes(hole->begin), block.placement);
    if (!place) continue;
    try {
      copy_to(id, pool_.info(*place).offset);
    } catch (...) {
      static_cast<void>(pool_.free(*place));
      throw;
    }
    pool_.move_to(id, *place);
    hole->begin += to_grains(block.bytes);
  }
  for (const BlockId id : movable_blocks()) move_left(id);
}

bool EvictingPool::gather_what_is_free() {
  if (!policy_.traits().moves_blocks || pool_.ignores_addresses()) return false;
  const std::uint64_t moves = stats_.moves;
  move_left(movable_blocks());
  return stats_.moves > moves;
}

std::vector<BlockId> EvictingPool::movable_blocks() const {
  std::vector<BlockId> movable;
  for (const Chunk* chunk : pool_.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const bool may_move = !chunk->is_hole(slot) && pool_.is_movable(chunk->block_at(slot));
      if (may_move) movable.push_back(pool_.id_of(chunk->block_at(slot)));
    }
  }
  return movable;
}

}  // namespace coop
