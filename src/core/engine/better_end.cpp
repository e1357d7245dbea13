#include "core/engine/better_end.hpp"

#include <algorithm>
#include <limits>

namespace coop {
namespace {

// What does not go, and the pool's ends, are dearer than anything.
double score_at(const AddressOrder& order, Grains position, double now) {
  constexpr double kStays = std::numeric_limits<double>::infinity();
  if (position < 0 || position >= order.total()) return kStays;
  const AddressOrder::Place place = order.piece_at(position);
  const BlockFacts block = place.chunk->facts(place.slot);
  return block.is_fixed ? kStays
                        : static_cast<double>(block.cost) / std::max(1.0, now - block.last_use);
}

// Empty if there is none.
Extent hole_at(const AddressOrder& order, Grains position) {
  if (position < 0 || position >= order.total()) return {position, position};
  const AddressOrder::Place place = order.piece_at(position);
  return place.is_hole() ? place.extent() : Extent{position, position};
}

}  // namespace

std::optional<Bytes> better_end(const Pool& pool, BlockId id, Bytes most, double now) {
  const BlockInfo block = pool.info(id);
  const AddressOrder& order = pool.order();
  const Grains begin = to_grains(block.offset);
  const Grains end = begin + to_grains(block.bytes);
  const Extent left = hole_at(order, begin - 1);
  const Extent right = hole_at(order, end);
  if ((left.size() > 0) == (right.size() > 0)) return std::nullopt;
  const bool is_at_left = right.size() > 0;
  const Extent rest = is_at_left ? right : left;
  if (to_bytes(rest.size()) > most) return std::nullopt;
  const double beside = score_at(order, is_at_left ? begin - 1 : end, now);
  const double beyond = score_at(order, is_at_left ? rest.end : rest.begin - 1, now);
  if (!(beside < beyond)) return std::nullopt;
  return is_at_left ? block.offset + to_bytes(rest.size()) : to_bytes(rest.begin);
}

}  // namespace coop
