#pragma once

// The functions of Chunk, inline because every change of the pool goes through several of them.

#include <algorithm>
#include <cstring>

#include "core/base/check.hpp"
#include "core/pool/chunk.hpp"

namespace coop {

namespace chunk_detail {

// Moves eight entries of a column, which may overlap with where they go.
template <typename Column>
void move_eight(Column& column, int from, int to) {
  std::array<typename Column::value_type, Chunk::kLane> eight{};
  std::memcpy(eight.data(), column.data() + from, sizeof(eight));
  std::memcpy(column.data() + to, eight.data(), sizeof(eight));
}

inline void move_eight(Chunk& chunk, int from, int to) {
  move_eight(chunk.begin, from, to);
  move_eight(chunk.cost, from, to);
  move_eight(chunk.last_use, from, to);
  move_eight(chunk.block, from, to);
}

// Moves the pieces from `slot` on, and the end of the last one, up by one slot. In eights for all
// columns together: four calls of memmove, each with its own guess at the length, take twice as
// long. What lies past the end is moved along, and stays what it is.
inline void shift_up(Chunk& chunk, int slot) {
  for (int i = slot + (chunk.count - slot) / Chunk::kLane * Chunk::kLane; i >= slot;
       i -= Chunk::kLane) {
    move_eight(chunk, i, i + 1);
  }
}

inline void shift_down(Chunk& chunk, int slot) {
  for (int i = slot; i <= chunk.count; i += Chunk::kLane) move_eight(chunk, i, i - 1);
}

// Opens a zero bit at `slot`, moving the bits from there on up.
constexpr std::uint64_t open_bit(std::uint64_t bits, int slot) {
  const std::uint64_t low = Chunk::low_bits(slot);
  return (bits & low) | ((bits & ~low) << 1U);
}

// Removes the bit at `slot`, moving the bits above it down.
constexpr std::uint64_t close_bit(std::uint64_t bits, int slot) {
  const std::uint64_t low = Chunk::low_bits(slot);
  return (bits & low) | ((bits >> 1U) & ~low);
}

constexpr void set_bit(std::uint64_t& bits, int slot, bool value) {
  const std::uint64_t bit = std::uint64_t{1} << slot;
  bits = (bits & ~bit) | (static_cast<std::uint64_t>(value) << slot);
}

}  // namespace chunk_detail

inline int Chunk::slot_of(BlockIndex wanted) const {
  // All 64 at once: vector instructions, and no branch on where it is. A block is in one slot only.
  std::uint32_t slot = 0;
  for (std::uint32_t i = 0; i < kCapacity; ++i) slot += block[i] == wanted ? i : 0;
  COOP_CHECK(block[slot] == wanted);
  return static_cast<int>(slot);
}

inline Grains Chunk::largest_hole() const {
  Grains largest = 0;
  for (const int slot : SlotsOf(holes)) largest = std::max(largest, extent(slot).size());
  return largest;
}

inline void Chunk::hold(int slot, BlockIndex by, const BlockFacts& facts) {
  block[static_cast<std::size_t>(slot)] = by;
  chunk_detail::set_bit(holes, slot, false);
  set_facts(slot, facts);
}

inline void Chunk::set_facts(int slot, const BlockFacts& facts) {
  const auto i = static_cast<std::size_t>(slot);
  cost[i] = facts.is_fixed ? 0.0F : facts.cost;
  last_use[i] = facts.last_use;
  chunk_detail::set_bit(fixed, slot, facts.is_fixed);
}

inline void Chunk::make_hole(int slot) {
  block[static_cast<std::size_t>(slot)] = kNoBlock;
  chunk_detail::set_bit(holes, slot, true);
  set_facts(slot, {});
}

inline void Chunk::insert_hole(int slot, Grains at) {
  COOP_CHECK(!is_full() && slot > 0 && slot <= count);
  chunk_detail::shift_up(*this, slot);
  holes = chunk_detail::open_bit(holes, slot);
  fixed = chunk_detail::open_bit(fixed, slot);
  ++count;
  begin[static_cast<std::size_t>(slot)] = at;
  make_hole(slot);
}

inline void Chunk::erase(int slot) {
  chunk_detail::shift_down(*this, slot + 1);
  holes = chunk_detail::close_bit(holes, slot);
  fixed = chunk_detail::close_bit(fixed, slot);
  --count;
  cost[static_cast<std::size_t>(count)] = 0;
  block[static_cast<std::size_t>(count)] = kNoBlock;
}

inline void Chunk::take_tail(Chunk& from, int first) {
  const int n = from.count - first;
  std::copy_n(from.begin.begin() + first, n + 1, begin.begin() + count);
  std::copy_n(from.cost.begin() + first, n, cost.begin() + count);
  std::copy_n(from.last_use.begin() + first, n, last_use.begin() + count);
  std::copy_n(from.block.begin() + first, n, block.begin() + count);
  std::fill_n(from.cost.begin() + first, n, 0.0F);
  std::fill_n(from.block.begin() + first, n, kNoBlock);
  holes |= (from.holes >> first) << count;
  fixed |= (from.fixed >> first) << count;
  from.holes &= low_bits(first);
  from.fixed &= low_bits(first);
  count += n;
  from.count = first;
}

}  // namespace coop
