#include "core/engine/compaction.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace coop {
namespace {

// A hole, or a block that goes: what a stretch gets its room from.
struct Yield {
  Extent extent;
  double cost = 0;
};

// The blocks of a chunk that go. All of them at once, with vector instructions.
std::uint64_t evicted_in(const Chunk& chunk, const CompactionTerms& terms) {
  if (!(terms.dear > 0)) return 0;
  std::array<std::uint8_t, Chunk::kCapacity> goes{};
  for (std::size_t i = 0; i < Chunk::kCapacity; ++i) {
    goes[i] = static_cast<std::uint8_t>(terms.is_cheap(chunk.cost[i], chunk.last_use[i]));
  }
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < Chunk::kCapacity; ++i) bits |= std::uint64_t{goes[i]} << i;
  return bits & chunk.evictable();
}

// Where the last block in it ends that may not move; nothing if all of them may.
std::optional<Grains> end_of_last_that_stays(const Pool& pool, Extent extent) {
  std::optional<Grains> end;
  for_each_piece(pool.order(), extent, [&](const Chunk& chunk, int slot) {
    const bool stays = chunk.is_fixed(slot) && !pool.is_movable(chunk.block_at(slot));
    if (stays) end = chunk.extent(slot).end;
  });
  return end;
}

}  // namespace

// A window with two ends, as in Note [The search for a window], over what yields room. All between is moved.
// Whether it may be is looked up last, for few stretches are cheaper than the best so far.
std::optional<Stretch> find_stretch_to_compact(const Pool& pool, Grains request,
                                               const CompactionTerms& terms) {
  std::vector<Yield> yields;
  yields.reserve(pool.order().piece_count());
  std::size_t left = 0;
  Grains room = 0;
  double evicting = 0;
  std::optional<Stretch> best;
  double bound = terms.most;

  const auto drop_left = [&] {
    room -= yields[left].extent.size();
    evicting -= yields[left].cost;
    ++left;
  };
  const auto look = [&] {
    while (room >= request) {
      while (room - yields[left].extent.size() >= request) drop_left();
      const Extent extent{yields[left].extent.begin, yields.back().extent.end};
      const auto moved = static_cast<double>(to_bytes(extent.size() - room));
      const double cost = evicting + moved * terms.copy_ns_per_byte;
      if (!(cost < bound)) return;
      const auto stays_until = end_of_last_that_stays(pool, extent);
      if (!stays_until) {
        best = Stretch{extent, cost};
        bound = cost;
        return;
      }
      while (yields[left].extent.begin < *stays_until) drop_left();
    }
  };
  for (const Chunk* chunk : pool.order().chunks()) {
    const std::uint64_t evicted = evicted_in(*chunk, terms);
    for (const int slot : SlotsOf(chunk->holes | evicted)) {
      const double cost = chunk->is_hole(slot) ? 0 : terms.cost_of_evicting(chunk->facts(slot));
      yields.push_back({chunk->extent(slot), cost});
      room += yields.back().extent.size();
      evicting += cost;
      look();
    }
  }
  return best;
}

}  // namespace coop
