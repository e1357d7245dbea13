#pragma once

// Small blocks, in an area of their own.
//
// A network makes thousands of tensors of a few bytes (biases, statistics, scalars). They are not worth
// evicting, and one of them in the middle of the pool would cut a window in two. So they share slabs:
// one block of the pool, cut into at most 64 equal slots of one size class, one bit each.
//
//     slab of class 4 KiB    [ used | used | free | used | free | ... ]
//
// The area does not find memory itself: the pool gives it slabs and takes back empty ones. One empty slab
// per class is kept so that a lone tensor that comes and goes does not make one each time; the pool asks
// for it back when it is short.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/pool/chunk.hpp"
#include "core/pool/grain.hpp"

namespace coop {

class SmallArea {
 public:
  using SlabIndex = std::uint32_t;
  struct SlotId {
    SlabIndex slab = 0;
    std::uint8_t number = 0;
  };
  struct Slot {
    SlotId id;
    Extent extent;
  };

  // Blocks of up to `largest` grains are small; slabs are about `slab_size` grains long.
  SmallArea(Grains largest, Grains slab_size);

  [[nodiscard]] bool takes(Grains size) const { return size <= largest_; }
  [[nodiscard]] Grains limit() const { return largest_; }
  [[nodiscard]] Grains slot_size(Grains size) const;
  // How long a slab for blocks of this size must be.
  [[nodiscard]] Grains slab_size(Grains size) const;

  [[nodiscard]] bool has_room(Grains size) const;
  // Where there is room.
  Slot take(Grains size) noexcept;
  // Before a slab is sought: may throw, so that add_slab does not.
  void expect_slab();
  void add_slab(Grains size, Extent extent, BlockIndex block) noexcept;
  // Returns the slab's block where the slab is empty and no longer wanted.
  std::optional<BlockIndex> release(SlotId slot) noexcept;
  // Gives up one empty slab, if there is one.
  std::optional<BlockIndex> give_up_empty_slab() noexcept;

  [[nodiscard]] Grains free_grains() const { return free_; }
  // Throws InternalError where a slab's bookkeeping is not true.
  void validate() const;

 private:
  static constexpr SlabIndex kNone = 0xFFFFFFFF;
  struct Slab {
    Extent extent;
    BlockIndex block = kNoBlock;
    std::uint8_t size_class = 0;
    std::uint64_t all = 0;  // one bit per slot
    std::uint64_t free = 0;
    // Slabs of one class that have a free slot form a list.
    SlabIndex previous = kNone;
    SlabIndex next = kNone;
  };
  struct Class {
    Grains slot = 0;
    SlabIndex first_with_room = kNone;
    SlabIndex empty = kNone;  // the one that is kept
  };

  [[nodiscard]] std::size_t class_of(Grains size) const;
  void link(SlabIndex index) noexcept;
  void unlink(SlabIndex index) noexcept;
  BlockIndex remove(SlabIndex index) noexcept;

  Grains largest_;
  Grains slab_target_;
  Grains free_ = 0;
  std::vector<Class> classes_;
  std::vector<Slab> slabs_;
  std::vector<SlabIndex> unused_;
};

}  // namespace coop
