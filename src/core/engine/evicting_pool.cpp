#include "core/engine/evicting_pool.hpp"

#include <chrono>
#include <cmath>
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
  const BlockId made_room_for = make_room_and_allocate(request);
  stats_.making_room_ns += clock_() - began;
  return made_room_for;
}

std::optional<BlockId> EvictingPool::allocate_at(const Request& request, Bytes offset) {
  const auto id = pool_.allocate_at(request.bytes, offset, request.placement);
  if (id) ++stats_.allocations;
  return id;
}

BlockId EvictingPool::make_room_and_allocate(const Request& request) {
  ++stats_.searches;
  // Every round frees a block. More rounds than blocks: an owner who adds to them, against the rules.
  std::size_t rounds_left = pool_.block_count() + 1;
  for (;;) {
    COOP_CHECK(rounds_left > 0);
    --rounds_left;
    choose_victims(request);
    const bool can_evict = !victims_.empty();
    for (const BlockId victim : victims_) evict(victim);
    const bool has_moved = !can_evict && move_blocks_aside(request);
    if (!can_evict && !has_moved) throw OutOfMemory(report_memory(pool_, request.bytes, owner_));

    const std::uint64_t searched = clock_();
    const auto id = pool_.allocate(request.bytes, request.placement);
    stats_.search_ns += clock_() - searched;
    if (id) {
      ++stats_.served;
      stats_.fragmentation_sum +=
          static_cast<double>(pool_.free_bytes()) / static_cast<double>(pool_.bytes());
      return *id;
    }
    COOP_CHECK(!has_moved);  // sliding makes room for certain
  }
}

// Costs that are out of date are nearly always too low (more is evicted by now): victims whose costs turn
// out right are the best there are. Each round corrects a cost, and after a few it is good enough.
void EvictingPool::choose_victims(const Request& request) {
  constexpr int kMostCorrections = 64;
  const std::uint64_t began = clock_();
  owner_.prepare_search();
  for (int round = 0;; ++round) {
    victims_.clear();
    policy_.choose_victims(pool_, request, victims_);
    const bool is_good = round >= kMostCorrections || !owner_.correct_costs(victims_);
    if (is_good && !owner_.keeps_some(victims_)) break;
  }
  stats_.search_ns += clock_() - began;
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

bool EvictingPool::move_blocks_aside(const Request& request) {
  if (pool_.ignores_addresses()) return false;
  std::vector<BlockId> evicted;
  std::vector<BlockId> moved;
  do {
    const std::uint64_t began = clock_();
    const auto stretch = find_stretch_to_compact(pool_, to_grains(request.bytes));
    stats_.search_ns += clock_() - began;
    if (!stretch) return false;
    evicted.clear();
    moved.clear();
    for_each_piece(pool_.order(), *stretch, [&](const Chunk& chunk, int slot) {
      if (chunk.is_hole(slot)) return;
      (chunk.is_fixed(slot) ? moved : evicted).push_back(pool_.id_of(chunk.block_at(slot)));
    });
  } while (owner_.keeps_some(evicted));
  for (const BlockId id : evicted) evict(id);
  for (const BlockId id : moved) move_left(id);
  return true;
}

void EvictingPool::move_left(BlockId id) {
  const auto target = pool_.slide_target(id);
  if (!target) return;  // at the left end already
  const BlockInfo block = pool_.info(id);
  tell_owner([&] { owner_.relocate(id, block.offset, *target, block.bytes); });
  pool_.slide_left(id);
  ++stats_.moves;
  stats_.moved_bytes += block.bytes;
}

void EvictingPool::move_all_left() {
  std::vector<BlockId> movable;
  for (const Chunk* chunk : pool_.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const bool may_move = !chunk->is_hole(slot) && pool_.is_movable(chunk->block_at(slot));
      if (may_move) movable.push_back(pool_.id_of(chunk->block_at(slot)));
    }
  }
  for (const BlockId id : movable) move_left(id);
}

}  // namespace coop
