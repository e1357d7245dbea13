#include "core/engine/moving_out.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/check.hpp"
#include "core/engine/evicting_pool.hpp"

namespace coop {
namespace {

using Part = Moves::Part;

Grains grains_of(const Pool& pool, BlockId id) { return to_grains(pool.info(id).bytes); }

std::vector<Part> parts_of(const Pool& pool, const CompactionTerms& terms) {
  std::vector<Part> parts(1);
  for (const Chunk* chunk : pool.order().chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const Extent extent = chunk->extent(slot);
      const bool is_hole = chunk->is_hole(slot);
      if (!is_hole && !pool.is_movable(chunk->block_at(slot))) {
        parts.emplace_back();
        continue;
      }
      Part& part = parts.back();
      if (part.extent.size() == 0) part.extent.begin = extent.begin;
      part.extent.end = extent.end;
      if (is_hole) continue;
      const BlockId id = pool.id_of(chunk->block_at(slot));
      if (terms.evicts(chunk->facts(slot))) {
        part.goes.push_back(id);
        part.cost += terms.cost_of_evicting(chunk->facts(slot));
      } else {
        part.stays.push_back(id);
        part.held += extent.size();
      }
    }
  }
  std::erase_if(parts, [](const Part& it) { return it.extent.size() == 0; });
  return parts;
}

// Who moves out of one part into which of all, so that there is room for the request.
class Movers {
 public:
  Movers(const Pool& pool, const std::vector<Part>& parts, std::size_t from) : pool_(pool) {
    for (const Part& it : parts) free_.push_back(it.extent.size() - it.held);
    free_[from] = 0;
    for (const BlockId id : parts[from].stays) left_.push_back(id);
    std::stable_sort(left_.begin(), left_.end(),
                     [&](BlockId a, BlockId b) { return size(a) < size(b); });
  }

  bool move(Grains lack) {
    while (lack > 0) {
      const Grains most = *std::max_element(free_.begin(), free_.end());
      auto chosen = std::find_if(left_.begin(), left_.end(),
                                 [&](BlockId id) { return size(id) >= std::min(lack, most); });
      if (chosen == left_.end() || size(*chosen) > most) {
        if (chosen == left_.begin()) return false;
        --chosen;
      }
      const Grains grains = size(*chosen);
      const std::size_t into = place_for(grains);
      free_[into] -= grains;
      chosen_.push_back({*chosen, into});
      left_.erase(chosen);
      lack -= std::min(lack, grains);
    }
    return true;
  }
  [[nodiscard]] std::vector<Moves::Mover>& chosen() { return chosen_; }

 private:
  [[nodiscard]] Grains size(BlockId id) const { return grains_of(pool_, id); }
  // Where the least is left over; there is room somewhere.
  [[nodiscard]] std::size_t place_for(Grains grains) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (free_[i] >= grains && (!best || free_[i] < free_[*best])) best = i;
    }
    return *best;
  }

  const Pool& pool_;
  std::vector<Grains> free_;
  std::vector<BlockId> left_;  // the smallest first
  std::vector<Moves::Mover> chosen_;
};

// As if all that stays were copied.
double cost_of(const std::vector<Part>& parts, std::size_t from,
               const std::vector<Moves::Mover>& movers, const CompactionTerms& terms) {
  const auto cost = [&](const Part& it) {
    return it.cost + static_cast<double>(to_bytes(it.held)) * terms.copy_ns_per_byte;
  };
  std::vector<bool> takes_part(parts.size());
  takes_part[from] = true;
  for (const Moves::Mover& mover : movers) takes_part[mover.into] = true;
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (takes_part[i]) sum += cost(parts[i]);
  }
  return sum;
}

}  // namespace

std::optional<Moves> find_moving_out(const Pool& pool, Grains request,
                                     const CompactionTerms& terms) {
  std::vector<Part> parts = parts_of(pool, terms);
  std::optional<std::size_t> best;
  std::vector<Moves::Mover> best_movers;
  double bound = terms.most;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (part.extent.size() < request) continue;
    const Grains free = part.extent.size() - part.held;
    Movers movers(pool, parts, i);
    if (!movers.move(request - std::min(request, free))) continue;
    const double cost = cost_of(parts, i, movers.chosen(), terms);
    if (!(cost < bound)) continue;
    best = i;
    bound = cost;
    best_movers = std::move(movers.chosen());
  }
  if (!best) return std::nullopt;
  Moves found{.room = std::move(parts[*best]), .cost = bound};
  std::vector<std::optional<std::size_t>> number(parts.size());
  for (Moves::Mover& mover : best_movers) {
    if (!number[mover.into]) {
      number[mover.into] = found.others.size();
      found.others.push_back(std::move(parts[mover.into]));
    }
    mover.into = *number[mover.into];
  }
  found.movers = std::move(best_movers);
  return found;
}

// --- doing it ---

// False, and nothing has gone or moved, if the owner keeps some of it: it is to be looked for anew.
bool EvictingPool::make(const Moves& moves) {
  if (keeps_some_of(moves.room)) return false;
  for (const Part& other : moves.others) {
    if (keeps_some_of(other)) return false;
  }
  std::vector<Bytes> ends;
  for (const Part& other : moves.others) ends.push_back(empty(other));
  const Bytes moved_before = stats_.moved_bytes;
  for (const Moves::Mover& mover : moves.movers) {
    Bytes& end = ends[mover.into];
    const BlockInfo block = pool_.info(mover.block);
    const auto place = pool_.allocate_at(block.bytes, end, block.placement);
    COOP_CHECK(place);
    try {
      copy_to(mover.block, end);
    } catch (...) {
      static_cast<void>(pool_.free(*place));
      throw;
    }
    pool_.move_to(mover.block, *place);
    end += block.bytes;
  }
  stats_.moving_ns +=
      static_cast<double>(stats_.moved_bytes - moved_before) * owner_.copy_ns_per_byte();
  static_cast<void>(empty(moves.room));
  return true;
}

bool EvictingPool::keeps_some_of(const Part& part) {
  std::vector<BlockId> evictable = part.goes;
  for (const BlockId id : part.stays) {
    if (pool_.info(id).tenure == Tenure::kEvictable) evictable.push_back(id);
  }
  return owner_.keeps_some(evictable);
}

// Where what stays in it ends, pushed to its left end.
Bytes EvictingPool::empty(const Part& part) {
  for (const BlockId id : part.goes) evict(id);
  std::vector<BlockId> here;
  Bytes end = to_bytes(part.extent.begin);
  for (const BlockId id : part.stays) {
    const BlockInfo block = pool_.info(id);
    const bool has_left =
        block.offset < to_bytes(part.extent.begin) || block.offset >= to_bytes(part.extent.end);
    if (has_left) continue;
    here.push_back(id);
    end += block.bytes;
  }
  move_left(here);
  return end;
}

}  // namespace coop
