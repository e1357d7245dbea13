#pragma once

// Up to 64 neighbouring pieces of the pool, held blocks and holes, one array per fact.
//
//     slot       0      1      2      3             count = 4
//            +------+------+------+------+
//     begin  |   0  |   8  |  12  |  40  | 64       begin[count]: the end of the last piece
//     cost   |  9.5 |   0  |   0  | 2.25 | 0 0 ...  0 for holes, for fixed pieces, and past the end
//     block  |   7  |   -  |   3  |  12  | - - ...  none for holes and past the end
//     holes  |      |   x  |      |      |          one bit each
//     fixed  |      |      |   x  |      |          one bit each: breaks every window
//            +------+------+------+------+
//
// The search for a window reads begin, cost and last_use in address order, eight pieces at a time, and
// may read up to the next multiple of eight past the end; that is why those costs are 0. A block is
// looked up among all 64 at once; that is why there are none past the end.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/pool/grain.hpp"

namespace coop {

// Index of a held block in the tables of whoever owns it.
using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = 0xFFFFFFFF;

// What the search knows of a held block.
struct BlockFacts {
  float cost = 0;         // to bring it back, in nanoseconds; more than 0 unless fixed
  double last_use = 0;    // on the owner's clock, in nanoseconds
  bool is_fixed = false;  // may not be evicted: it breaks every window
};

struct Chunk {
  static constexpr int kCapacity = 64;  // one bit of `holes` and `fixed` each
  static constexpr int kLane = 8;       // pieces are read and shifted this many at a time,
  static constexpr int kPadded = kCapacity + 2 * kLane;  // and past the end

  int count = 0;
  std::uint32_t directory_slot = 0;
  std::uint64_t holes = 0;
  std::uint64_t fixed = 0;
  alignas(64) std::array<Grains, kPadded> begin{};
  alignas(64) std::array<float, kPadded> cost{};
  alignas(64) std::array<double, kPadded> last_use{};
  alignas(64) std::array<BlockIndex, kPadded> block = no_blocks();

  [[nodiscard]] Extent extent(int slot) const {
    const auto i = static_cast<std::size_t>(slot);
    return {begin[i], begin[i + 1]};
  }
  [[nodiscard]] BlockIndex block_at(int slot) const {
    return block[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] bool is_hole(int slot) const { return (holes >> slot & 1U) != 0; }
  [[nodiscard]] bool is_fixed(int slot) const { return (fixed >> slot & 1U) != 0; }
  [[nodiscard]] bool is_full() const { return count == kCapacity; }
  // Neither holes nor fixed: what a search may empty.
  [[nodiscard]] std::uint64_t evictable() const { return low_bits(count) & ~holes & ~fixed; }
  [[nodiscard]] BlockFacts facts(int slot) const {
    const auto i = static_cast<std::size_t>(slot);
    return {cost[i], last_use[i], is_fixed(slot)};
  }
  [[nodiscard]] int slot_of(BlockIndex wanted) const;
  [[nodiscard]] Grains largest_hole() const;

  void set_end(Grains end) { begin[static_cast<std::size_t>(count)] = end; }
  void hold(int slot, BlockIndex by, const BlockFacts& facts);
  void set_facts(int slot, const BlockFacts& facts);
  void make_hole(int slot);
  // Opens `slot` for a new hole that begins at `at`; the piece before it ends there.
  void insert_hole(int slot, Grains at);
  // Takes a piece away; the one before it, if it is in this chunk, gets its space.
  void erase(int slot);
  // Appends the pieces [first, count) of `from`, which follow ours in address order.
  void take_tail(Chunk& from, int first);

  static constexpr std::array<BlockIndex, kPadded> no_blocks() {
    std::array<BlockIndex, kPadded> blocks{};
    blocks.fill(kNoBlock);
    return blocks;
  }
  static constexpr std::uint64_t low_bits(int n) {
    return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  }
};

// The slots of set bits, from the left: for (const int slot : SlotsOf(chunk.holes)) ...
class SlotsOf {
 public:
  explicit constexpr SlotsOf(std::uint64_t bits) : bits_(bits) {}
  struct Iterator {
    std::uint64_t bits;
    int operator*() const { return std::countr_zero(bits); }
    Iterator& operator++() {
      bits &= bits - 1;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return bits != other.bits; }
  };
  [[nodiscard]] Iterator begin() const { return {bits_}; }
  [[nodiscard]] Iterator end() const { return {0}; }

 private:
  std::uint64_t bits_;
};

}  // namespace coop
