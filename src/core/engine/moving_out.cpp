// Note [Moving out]
//
// What running operators read and write can neither go nor move. Such a block in the middle of the pool leaves a
// stretch on either side, and a large request may fit neither, though there is room for it in both together:
//
//     before   | M | E | M |  pinned  | E | M | hole |       E evictable, M movable
//     after    |   room    |  pinned  | M | M | M |
//
// Then the stretch that lacks the least is emptied of what can be recomputed, and some of what else lies there
// moves elsewhere, where room is made for it as for any request.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/engine/evicting_pool.hpp"

namespace coop {
namespace {

struct Lack {
  Extent stretch;
  Grains grains = std::numeric_limits<Grains>::max();
};

// Between two blocks that may not move: the stretch that lacks the least to hold the request, if what can be
// recomputed goes and enough of what is there else finds a place elsewhere.
std::optional<Lack> find_least_lack(const Pool& pool, Grains request) {
  Lack least;
  Extent stretch;
  Grains movable = 0;
  Grains room = 0;  // in all of the pool
  const auto look = [&] {
    if (stretch.size() < request) return;
    const Grains lack = movable - std::min(movable, stretch.size() - request);
    if (lack < least.grains) least = {stretch, lack};
  };
  for (const Chunk* chunk : pool.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const Extent extent = chunk->extent(slot);
      const bool is_free = chunk->is_hole(slot) || !chunk->is_fixed(slot);
      if (is_free || pool.is_movable(chunk->block_at(slot))) {
        stretch.end = extent.end;
        (is_free ? room : movable) += extent.size();
        look();
      } else {
        stretch = {extent.end, extent.end};
        movable = 0;
      }
    }
  }
  const bool is_possible = least.grains < std::numeric_limits<Grains>::max() && room >= request;
  return is_possible ? std::optional(least) : std::nullopt;
}

std::vector<BlockId> blocks_in(const Pool& pool, Extent stretch) {
  std::vector<BlockId> blocks;
  for_each_piece(pool.order(), stretch, [&](const Chunk& chunk, int slot) {
    if (!chunk.is_hole(slot)) blocks.push_back(pool.id_of(chunk.block_at(slot)));
  });
  return blocks;
}

// The smallest that is enough, or the largest.
BlockId choose_mover(const Pool& pool, const std::vector<BlockId>& blocks, Bytes lack) {
  const auto bytes = [&](BlockId id) { return pool.info(id).bytes; };
  return *std::max_element(blocks.begin(), blocks.end(), [&](BlockId a, BlockId b) {
    const bool is_enough = bytes(a) >= lack;
    if (is_enough != (bytes(b) >= lack)) return !is_enough;
    return is_enough ? bytes(a) > bytes(b) : bytes(a) < bytes(b);
  });
}

}  // namespace

bool EvictingPool::move_out_for(const Request& request) {
  if (pool_.ignores_addresses()) return false;
  const auto has_room = [&](Extent stretch) {
    Grains held = 0;
    for (const BlockId id : blocks_in(pool_, stretch)) held += to_grains(pool_.info(id).bytes);
    return held + to_grains(request.bytes) <= stretch.size();
  };
  std::optional<Lack> lack;
  std::vector<BlockId> evictable;
  do {
    lack = find_least_lack(pool_, to_grains(request.bytes));
    if (!lack) return false;
    evictable.clear();
    for (const BlockId id : blocks_in(pool_, lack->stretch)) {
      if (pool_.info(id).tenure == Tenure::kEvictable) evictable.push_back(id);
    }
  } while (owner_.keeps_some(evictable));
  empty(lack->stretch);
  while (!has_room(lack->stretch)) {
    const std::vector<BlockId> left = blocks_in(pool_, lack->stretch);
    const BlockId mover = choose_mover(pool_, left, to_bytes(lack->grains));
    const Grains gained = to_grains(pool_.info(mover).bytes);
    if (!move_out(mover, lack->stretch, request.now)) return false;
    lack->grains -= std::min(lack->grains, gained);
    empty(lack->stretch);
  }
  return true;
}

// What can be recomputed goes, the others are pushed to its left end.
void EvictingPool::empty(Extent stretch) {
  std::vector<BlockId> moved;
  for (const BlockId id : blocks_in(pool_, stretch)) {
    if (pool_.info(id).tenure == Tenure::kEvictable) {
      evict(id);
    } else {
      moved.push_back(id);
    }
  }
  move_left(moved);
}

// Out of the stretch, whose blocks lie at its left end. False if there is no room elsewhere.
bool EvictingPool::move_out(BlockId id, Extent stretch, double now) {
  Bytes held = 0;
  for (const BlockId each : blocks_in(pool_, stretch)) held += pool_.info(each).bytes;
  const Bytes free = to_bytes(stretch.size()) - held;
  // Nobody else gets what has been made free here.
  std::optional<BlockId> reserved;
  if (free > 0) {
    reserved = pool_.allocate_at(free, to_bytes(stretch.begin) + held, Placement::kExpensive);
    if (!reserved)
      return false;  // something beside the stretch has gone, and it is no more what it was
  }
  const auto give_back = [&] {
    if (!reserved) return;
    const bool was_there = pool_.free(*reserved);
    COOP_CHECK(was_there);
  };
  const BlockInfo block = pool_.info(id);
  const Request request{block.bytes, block.placement, now};
  std::optional<BlockId> place;
  try {
    place = pool_.allocate(request.bytes, request.placement);
    if (!place) place = evict_or_compact(request);
    if (place && pool_.contains(id)) copy_to(id, pool_.info(*place).offset);
  } catch (...) {
    if (place) static_cast<void>(pool_.free(*place));
    give_back();
    throw;
  }
  if (place && !pool_.contains(id)) {  // it was only there for one that is kept now
    static_cast<void>(pool_.free(*place));
  } else if (place) {
    pool_.move_to(id, *place);
    stats_.moving_ns += static_cast<double>(block.bytes) * owner_.copy_ns_per_byte();
  }
  give_back();
  return place.has_value();
}

}  // namespace coop
