#include "core/engine/compaction.hpp"

#include <vector>

namespace coop {
namespace {

struct Piece {
  Extent extent;
  Grains room = 0;  // what it yields
  double cost = 0;
};

}  // namespace

std::optional<Stretch> find_stretch_to_compact(const Pool& pool, Grains request,
                                               const CompactionTerms& terms) {
  std::vector<Piece> run;  // pieces since the last one that may not move
  std::size_t left = 0;
  Grains room = 0;
  double cost = 0;
  std::optional<Stretch> best;

  for (const Chunk* chunk : pool.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const Extent extent = chunk->extent(slot);
      Piece piece{.extent = extent, .room = extent.size()};
      if (!chunk->is_hole(slot) && terms.evicts(chunk->facts(slot))) {
        piece.cost = terms.cost_of_evicting(chunk->facts(slot));
      } else if (!chunk->is_hole(slot) &&
                 (!chunk->is_fixed(slot) || pool.is_movable(chunk->block_at(slot)))) {
        piece.room = 0;
        piece.cost = static_cast<double>(to_bytes(extent.size())) * terms.copy_ns_per_byte;
      } else if (!chunk->is_hole(slot)) {
        run.clear();
        left = 0;
        room = 0;
        cost = 0;
        continue;
      }
      run.push_back(piece);
      room += piece.room;
      cost += piece.cost;
      while (room - run[left].room >= request) {
        room -= run[left].room;
        cost -= run[left].cost;
        ++left;
      }
      if (room >= request && (!best || cost < best->cost)) {
        best = Stretch{{run[left].extent.begin, extent.end}, cost};
      }
    }
  }
  return best;
}

}  // namespace coop
