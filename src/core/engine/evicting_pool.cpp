#include "core/engine/evicting_pool.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/engine/better_end.hpp"
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
  if (id) {
    // As long as nothing had to go, the middle of the pool stays whole; later it is what does not fit a like block.
    const bool has_searched = stats_.searches > 0;
    return has_searched ? at_better_end(*id, request, request.bytes - 1) : *id;
  }
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
  ++stats_.searches;
  // Every round frees a block, or finds one that must stay. More rounds than blocks: an owner who adds to them, against
  // the rules.
  std::size_t rounds_left = pool_.block_count() + 2;
  for (;;) {
    COOP_CHECK(rounds_left > 0);
    --rounds_left;
    const std::optional<Moves> moves = choose_victims_or_moves(request);
    if (!moves && victims_.empty()) {
      // A slab that is kept empty for speed stood in the way of windows and moves, perhaps.
      if (pool_.trim()) continue;
      return std::nullopt;
    }
    const bool has_moved = moves && make(*moves);
    if (!moves) {
      for (const BlockId victim : victims_) evict(victim);
    }
    if (const auto id = serve(request)) return id;
    COOP_CHECK(!has_moved);  // they make room for certain
  }
}

// If there is room by now.
std::optional<BlockId> EvictingPool::serve(const Request& request) {
  const std::uint64_t began = clock_();
  auto id = pool_.allocate(request.bytes, request.placement);
  if (id) id = at_better_end(*id, request, pool_.bytes());
  stats_.search_ns += clock_() - began;
  if (!id) return std::nullopt;
  ++stats_.served;
  stats_.fragmentation_sum +=
      static_cast<double>(pool_.free_bytes()) / static_cast<double>(pool_.bytes());
  return id;
}

// Note [What is left over]. Nothing is in the block yet: to free it loses nothing.
BlockId EvictingPool::at_better_end(BlockId id, const Request& request, Bytes most_left_over) {
  const bool has_choice = policy_.traits().fit == Fit::kFromEnds &&
                          request.placement != Placement::kLongLived && !pool_.info(id).is_small;
  if (!has_choice) return id;
  const auto offset = better_end(pool_, id, most_left_over, request.now);
  const Bytes headroom_ends = to_bytes(pool_.long_lived_limit());
  const bool is_into_headroom =
      offset && *offset < headroom_ends && pool_.info(id).offset >= headroom_ends;
  if (!offset || is_into_headroom) return id;
  const bool was_there = pool_.free(id);
  COOP_CHECK(was_there);
  const auto moved = pool_.allocate_at(request.bytes, *offset, request.placement);
  COOP_CHECK(moved);
  return *moved;
}

// Costs that are out of date are nearly always too low (more is evicted by now): victims whose costs turn
// out right are the best there are. Each round corrects a cost, and after a few it is good enough. What is
// returned: what to move rather than to evict them.
std::optional<Moves> EvictingPool::choose_victims_or_moves(const Request& request) {
  const std::uint64_t began = clock_();
  owner_.prepare_search();
  for (int round = 0;; ++round) {
    victims_.clear();
    policy_.choose_victims(pool_, request, victims_);
    const bool is_good = round >= kMostCorrections || !owner_.correct_costs(victims_);
    if (is_good && !owner_.keeps_some(victims_)) break;
  }
  std::optional<Moves> moves;
  if (!pool_.ignores_addresses()) {
    moves = victims_.empty() ? moves_without_victims(request) : cheaper_than_victims(request);
  }
  stats_.search_ns += clock_() - began;
  return moves;
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
std::optional<Moves> EvictingPool::cheaper_than_victims(const Request& request) {
  constexpr double kMuchCheaper = 8;
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
  // What lives long has victims where it belongs, even if others are cheaper today.
  if (request.placement == Placement::kLongLived) {
    const bool is_enough_free = pool_.free_bytes() >= request.bytes;
    return is_enough_free ? find_compaction(request, terms) : std::nullopt;
  }
  terms.dear = terms.most;
  return find_moves(request, terms);
}

// Nothing that may go is in the way of the request: what lies between does not go. The last resort.
std::optional<Moves> EvictingPool::moves_without_victims(const Request& request) {
  return find_moves(request, {.copy_ns_per_byte = owner_.copy_ns_per_byte()});
}

// Which blocks are to go and which to move is not known beforehand: as long as that is cheaper, the dearest of those that
// would go is moved, too, and whatever is as dear.
std::optional<Moves> EvictingPool::find_moves(const Request& request, CompactionTerms terms) {
  constexpr int kMostRounds = 8;
  constexpr double kWorthMoving = 0.25;
  // What moves out is copied, and much beside it. Where victims are less dear than that, to look would take longer than
  // it brings: as a rule, that is.
  constexpr double kUsuallyCopied = 0.125;
  const double copying =
      kUsuallyCopied * static_cast<double>(pool_.held_bytes()) * terms.copy_ns_per_byte;
  std::optional<Moves> best;
  for (int round = 0; round < kMostRounds; ++round) {
    std::optional<Moves> found = find_compaction(request, terms);
    if (found) terms.most = found->cost;
    if (terms.most > copying) {
      auto way =
          at_costs_by_now([&] { return find_moving_out(pool_, to_grains(request.bytes), terms); });
      if (way) found = std::move(way);
    }
    if (!found && !best && terms.dear > 0 && pool_.free_bytes() >= request.bytes) {
      terms.dear = 0;
      continue;
    }
    if (!found) break;
    best = std::move(found);
    terms.most = best->cost;
    terms.dear = dearest_that_goes(*best, terms);
    if (terms.dear <= kWorthMoving * best->cost) break;
  }
  return best;
}

double EvictingPool::dearest_that_goes(const Moves& moves, const CompactionTerms& terms) const {
  double dearest = 0;
  const auto look_at = [&](const Moves::Part& part) {
    for (const BlockId id : part.goes) {
      const BlockInfo block = pool_.info(id);
      dearest = std::max(dearest,
                         terms.cost_of_evicting({.cost = block.cost, .last_use = block.last_use}));
    }
  };
  look_at(moves.room);
  for (const Moves::Part& other : moves.others) look_at(other);
  return dearest;
}

std::optional<Moves> EvictingPool::find_compaction(const Request& request,
                                                   const CompactionTerms& terms) {
  return at_costs_by_now([&]() -> std::optional<Moves> {
    const auto stretch = find_stretch_to_compact(pool_, to_grains(request.bytes), terms);
    if (!stretch) return std::nullopt;
    Moves found{.room = {.extent = stretch->extent}, .cost = stretch->cost};
    for_each_piece(pool_.order(), stretch->extent, [&](const Chunk& chunk, int slot) {
      if (chunk.is_hole(slot)) return;
      const bool goes = terms.evicts(chunk.facts(slot));
      (goes ? found.room.goes : found.room.stays).push_back(pool_.id_of(chunk.block_at(slot)));
    });
    return found;
  });
}

// What would go costs what it costs by now, as victims do: a gradient was cheap to make while what it is made from was
// there, and hangs on all of the step when that has been released.
template <typename Find>
std::optional<Moves> EvictingPool::at_costs_by_now(const Find& find) {
  for (int round = 0;; ++round) {
    std::optional<Moves> found = find();
    if (!found || round >= kMostCorrections) return found;
    bool is_news = owner_.correct_costs(found->room.goes);
    for (const Moves::Part& other : found->others) is_news |= owner_.correct_costs(other.goes);
    if (!is_news) return found;
  }
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
