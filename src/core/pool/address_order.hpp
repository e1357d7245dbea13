#pragma once

// All pieces of the pool, held blocks and holes, in the order of their addresses.
//
//     bounds       [ <= 9 | <= 4 | ...   largest hole, for each chunk (hole_bounds.hpp)
//                      |      |
//     chunks       [held|hole|held|held]    [hole|held|held]    [held| ...
//
// Why chunks. The window search reads every piece in address order, ten thousand of them within
// microseconds, so what it reads lies in arrays. One array for the whole pool would have to be
// shifted on every split; a linked list would be a cache miss per piece. Chunks of up to 64 pieces
// are the middle: the pass is linear, and a change shifts at most 64.
//
// Invariants
//   1. The pieces cover [0, total) without gap or overlap. No two holes are neighbours.
//   2. No chunk is empty; the end of one chunk is the begin of the next.
//   3. No chunk has a hole larger than its bound.
//   4. chunk_of_[block] is the chunk in which a held block lies.
//
// Costs. Nothing scans the pool. Finding a hole looks at the bounds and then at the holes of a
// chunk; finding a block looks through its chunk. A change shifts at most 64 pieces. Amortised: when
// a chunk overflows or runs low it is split or joined, which costs O(number of chunks), but only
// after some changes to that chunk.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/pool/chunk.hpp"
#include "core/pool/grain.hpp"
#include "core/pool/hole_bounds.hpp"

namespace coop {

class AddressOrder {
 public:
  // Where a piece is, or nowhere. Good until the next change.
  struct Place {
    Chunk* chunk = nullptr;
    int slot = 0;
    explicit operator bool() const { return chunk != nullptr; }
    [[nodiscard]] Extent extent() const { return chunk->extent(slot); }
    [[nodiscard]] bool is_hole() const { return chunk->is_hole(slot); }
  };

  explicit AddressOrder(Grains total);

  // The hole nearest to the left end that has this much room, counted from `from` on.
  [[nodiscard]] Place leftmost_hole(Grains at_least, Grains from = 0) noexcept;
  [[nodiscard]] Place rightmost_hole(Grains at_least) noexcept;
  [[nodiscard]] Place piece_at(Grains position) const;
  [[nodiscard]] Place place_of(BlockIndex block) const;
  [[nodiscard]] Place left_neighbour(Place place) const;

  // Cuts a block out of a hole. Either succeeds or changes nothing that can be seen.
  void take(Place hole, Extent extent, BlockIndex block, const BlockFacts& facts);
  // What became of a hole: where it now is, and the holes that are part of it.
  struct Joined {
    Extent hole;
    std::optional<Extent> left, right;
  };
  Joined release(BlockIndex block) noexcept;
  // Swaps a block with the hole at its left, which joins what is free at the block's right.
  Joined slide_left(BlockIndex block) noexcept;
  // Two blocks of one size.
  void trade_places(BlockIndex one, BlockIndex other) noexcept;
  void set_facts(BlockIndex block, const BlockFacts& facts) noexcept;

  [[nodiscard]] Grains total() const { return total_; }
  [[nodiscard]] std::size_t piece_count() const { return pieces_; }
  // O(n), for reports.
  [[nodiscard]] Grains largest_hole() const;
  // In address order, for the search.
  [[nodiscard]] std::span<const Chunk* const> chunks() const {
    return {directory_.data(), directory_.size()};
  }
  // How many pieces have been shifted or moved between chunks so far: what changes have cost.
  [[nodiscard]] std::uint64_t shifted_pieces() const { return shifted_; }

  // O(n). Throws InternalError where an invariant does not hold.
  void validate() const;

 private:
  void split(Chunk& chunk, int growing_at);
  void cut_hole(Place hole, Grains at);
  void swallow_right_hole(Place hole, Joined& joined) noexcept;
  void join_if_sparse(Chunk& chunk) noexcept;
  void join_with_next(Chunk& chunk) noexcept;
  void remove_chunk(Chunk& chunk) noexcept;
  void move_tail(Chunk& from, int first, Chunk& to) noexcept;
  void reindex_directory(std::size_t first) noexcept;

  Grains total_;
  std::size_t pieces_ = 1;
  std::uint64_t shifted_ = 0;
  std::vector<Chunk*> directory_;  // in address order
  HoleBounds bounds_;              // of the chunks in the directory
  std::vector<Chunk*> chunk_of_;   // by BlockIndex
  std::vector<std::unique_ptr<Chunk>> storage_;
  std::vector<Chunk*> spare_;  // chunks that are not in the directory
};

// Calls fn(const Chunk&, int slot) for every piece that begins inside the extent.
template <typename Function>
void for_each_piece(const AddressOrder& order, Extent extent, Function&& fn) {
  AddressOrder::Place place = order.piece_at(extent.begin);
  const auto chunks = order.chunks();
  for (std::size_t i = place.chunk->directory_slot; i < chunks.size(); ++i) {
    for (int slot = place.slot; slot < chunks[i]->count; ++slot) {
      if (chunks[i]->extent(slot).begin >= extent.end) return;
      fn(*chunks[i], slot);
    }
    place.slot = 0;
  }
}

}  // namespace coop
