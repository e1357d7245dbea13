#include "core/pool/chunk.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/check.hpp"

namespace coop {
namespace {

template <typename Column>
void shift(Column& column, int from, int to, int n) {
  std::memmove(column.data() + to, column.data() + from,
               static_cast<std::size_t>(n) * sizeof(column[0]));
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
  bits = value ? bits | bit : bits & ~bit;
}

}  // namespace

int Chunk::slot_of(BlockIndex wanted) const {
  const auto end = block.begin() + count;
  const auto found = std::find(block.begin(), end, wanted);
  COOP_CHECK(found != end);
  return static_cast<int>(found - block.begin());
}

Grains Chunk::largest_hole() const {
  Grains largest = 0;
  for (const int slot : SlotsOf(holes)) largest = std::max(largest, extent(slot).size());
  return largest;
}

void Chunk::hold(int slot, BlockIndex by, const BlockFacts& facts) {
  block[static_cast<std::size_t>(slot)] = by;
  set_bit(holes, slot, false);
  set_facts(slot, facts);
}

void Chunk::set_facts(int slot, const BlockFacts& facts) {
  const auto i = static_cast<std::size_t>(slot);
  cost[i] = facts.is_fixed ? 0.0F : facts.cost;
  last_use[i] = facts.last_use;
  set_bit(fixed, slot, facts.is_fixed);
}

void Chunk::make_hole(int slot) {
  block[static_cast<std::size_t>(slot)] = kNoBlock;
  set_bit(holes, slot, true);
  set_facts(slot, {});
}

void Chunk::insert_hole(int slot, Grains at) {
  COOP_CHECK(!is_full() && slot > 0 && slot <= count);
  const int above = count - slot;
  shift(begin, slot, slot + 1, above + 1);
  shift(cost, slot, slot + 1, above);
  shift(last_use, slot, slot + 1, above);
  shift(block, slot, slot + 1, above);
  holes = open_bit(holes, slot);
  fixed = open_bit(fixed, slot);
  ++count;
  begin[static_cast<std::size_t>(slot)] = at;
  make_hole(slot);
}

void Chunk::erase(int slot) {
  const int above = count - slot - 1;
  shift(begin, slot + 1, slot, above + 1);
  shift(cost, slot + 1, slot, above);
  shift(last_use, slot + 1, slot, above);
  shift(block, slot + 1, slot, above);
  holes = close_bit(holes, slot);
  fixed = close_bit(fixed, slot);
  --count;
  cost[static_cast<std::size_t>(count)] = 0;
}

void Chunk::take_tail(Chunk& from, int first) {
  const int n = from.count - first;
  std::copy_n(from.begin.begin() + first, n + 1, begin.begin() + count);
  std::copy_n(from.cost.begin() + first, n, cost.begin() + count);
  std::copy_n(from.last_use.begin() + first, n, last_use.begin() + count);
  std::copy_n(from.block.begin() + first, n, block.begin() + count);
  std::fill_n(from.cost.begin() + first, n, 0.0F);
  holes |= (from.holes >> first) << count;
  fixed |= (from.fixed >> first) << count;
  from.holes &= low_bits(first);
  from.fixed &= low_bits(first);
  count += n;
  from.count = first;
}

}  // namespace coop
