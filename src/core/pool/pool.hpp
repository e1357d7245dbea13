#pragma once

// The memory that a budget grants: one address range, cut into blocks.
//
//     0      long_lived_end                                                          bytes()
//     |long-lived| expensive ->                  free                    <- cheap |
//     +----------+-------+------+----------------------------+-----+----+---------+
//
// Blocks that live long (parameters, gradients, optimizer state, slabs of small blocks) are packed
// at the left end, so that they do not cut the rest in pieces. Blocks that are expensive to bring
// back follow from the left, cheap ones come from the right: a run of neighbours is then often all
// cheap, and makes a cheap window. These are preferences; a request takes any hole before it fails.
//
// What always holds
//   - held_bytes() + free_bytes() == bytes(), and the pieces of the pool are its blocks and holes.
//   - Every block begins at a multiple of 512 bytes, whatever the pool's size.
//   - A call that throws has changed nothing. free() never throws and never allocates.
//   - The pool decides nothing about eviction: it hands out what is free and keeps the facts (cost,
//     last use, pins) where the search of a policy finds them.
//
// Not safe for use by several threads at once: the engine has the one lock.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/handle.hpp"
#include "core/pool/address_order.hpp"
#include "core/pool/backing.hpp"
#include "core/pool/holes_by_size.hpp"
#include "core/pool/small_area.hpp"

namespace coop {

// A block's name in its pool; of another pool it means nothing.
struct Block;
using BlockId = Handle<Block>;

enum class Placement : std::uint8_t { kExpensive, kCheap, kLongLived };

// How a hole is chosen among those that fit.
enum class Fit : std::uint8_t {
  kFromEnds,  // the one nearest to the end where such blocks belong
  kBest,      // the smallest
};

// What may become of a block while no operator uses it.
enum class Tenure : std::uint8_t {
  kStays,      // someone knows its address
  kMovable,    // its contents may be copied to another place in the pool
  kEvictable,  // its contents can be recomputed, or moved
};

// Told of every block that goes, while its memory is still its own.
class PoolListener {
 public:
  PoolListener() = default;
  PoolListener(const PoolListener&) = delete;
  PoolListener& operator=(const PoolListener&) = delete;
  virtual ~PoolListener() = default;
  virtual void block_goes(BlockId block) noexcept = 0;
};

struct PoolOptions {
  Bytes bytes = 0;
  Fit fit = Fit::kFromEnds;
  // Blocks up to this size live in slabs; 0 switches that off.
  Bytes small_limit = Bytes{64} << 10U;
  // Every block finds a place while there are bytes for it: the address range is far larger than the
  // budget. For comparing with systems that have no addresses.
  bool ignores_addresses = false;
  PoolListener* listener = nullptr;
};

struct BlockInfo {
  Bytes offset = 0;
  Bytes bytes = 0;  // what it occupies
  Bytes requested_bytes = 0;
  Placement placement = Placement::kExpensive;
  Tenure tenure = Tenure::kStays;
  std::uint32_t pins = 0;
  float cost = 0;
  double last_use = 0;
  bool is_small = false;
};

class Pool {
 public:
  // Throws InvalidArgument for a size of less than one grain or more than kMaxPoolBytes. Bytes past
  // the last whole grain are not used.
  Pool(const PoolOptions& options, Backing& backing);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // A block out of what is free, or nothing. It stays where it is until set_tenure says otherwise.
  // Throws InvalidArgument for 0 bytes, and for more than the whole pool.
  std::optional<BlockId> allocate(Bytes requested, Placement placement);
  // A block at this offset, a multiple of 512 bytes, or nothing where that is not free. Never a small one.
  std::optional<BlockId> allocate_at(Bytes requested, Bytes offset, Placement placement);
  // False if there is no such block (any more); nothing changes then. Pins do not keep a block.
  [[nodiscard]] bool free(BlockId id) noexcept;

  // Gives memory that is kept for speed (empty slabs) back to the pool; true if there was any. An
  // allocation that needs it does so by itself.
  bool trim() noexcept;

  // The calls below throw InvalidArgument if there is no such block (any more).
  void set_tenure(BlockId id, Tenure tenure);
  // Makes the block evictable. `cost` is in nanoseconds, finite and not negative. Small blocks are not
  // worth it and stay what they are.
  void set_evictable(BlockId id, double cost, double last_use);
  void touch(BlockId id, double now);
  // Of an evictable block; others keep what they have. True if it is another one than before.
  bool set_cost(BlockId id, double cost);
  // Pins nest. A pinned block is neither evicted nor moved.
  void pin(BlockId id);
  void unpin(BlockId id);
  // Moves the block's place to the left end of the free space at its left; its new offset. The
  // caller copies the contents first. InvalidArgument if that is not free or the block may not
  // move.
  Bytes slide_left(BlockId id);
  // Where slide_left would put it.
  [[nodiscard]] std::optional<Bytes> slide_target(BlockId id) const;
  // Gives the block the place of another one of its size, which goes. The caller copies the contents first.
  // InvalidArgument if the block may not move, or the two are not of one size.
  void move_to(BlockId id, BlockId place);

  [[nodiscard]] bool contains(BlockId id) const noexcept;
  [[nodiscard]] BlockInfo info(BlockId id) const;
  [[nodiscard]] std::byte* address(BlockId id) const;

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] Bytes held_bytes() const { return held_bytes_; }
  [[nodiscard]] Bytes free_bytes() const { return bytes() - held_bytes_; }
  // What would be free if everything went that is evictable, pinned or not.
  [[nodiscard]] Bytes room_bytes() const { return free_bytes() + evictable_bytes_; }
  [[nodiscard]] Bytes largest_hole_bytes() const { return to_bytes(order_.largest_hole()); }
  [[nodiscard]] std::size_t block_count() const { return block_count_; }
  // Blocks up to this size lie in slabs.
  [[nodiscard]] Bytes small_limit() const { return to_bytes(small_.limit()); }
  // Of how many bytes slabs of small blocks are, about, in a pool of this size.
  [[nodiscard]] static Bytes slab_bytes(Bytes pool_bytes);
  [[nodiscard]] bool ignores_addresses() const { return bytes_ < to_bytes(order_.total()); }

  // For the search: the pieces in address order, and what a piece's block may suffer.
  [[nodiscard]] const AddressOrder& order() const {
    if (!unpublished_.empty()) publish_all();
    return order_;
  }
  [[nodiscard]] BlockId id_of(BlockIndex index) const {
    return {index, records_[index].generation};
  }
  [[nodiscard]] bool is_movable(BlockIndex index) const;
  // Where the headroom of the long-lived blocks ends: they should lie before it.
  [[nodiscard]] Grains long_lived_limit() const;

  // O(n). Throws InternalError where an invariant does not hold.
  void validate() const;

 private:
  enum class Kind : std::uint8_t { kUnused, kBlock, kSlab, kSmall };
  // Small on purpose: a pool has ten thousand of them, and which is next cannot be guessed.
  struct Record {
    double last_use = 0;
    Bytes requested = 0;
    Extent extent;
    float cost = 0;
    std::uint32_t generation = 0;
    std::uint32_t pins = 0;
    SmallArea::SlotId slot;  // of a small block
    Kind kind = Kind::kUnused;
    Placement placement = Placement::kExpensive;
    Tenure tenure = Tenure::kStays;
    bool is_unpublished = false;
  };

  // Null if there is no such block.
  [[nodiscard]] const Record* find(BlockId id) const noexcept {
    if (id.index() >= records_.size()) return nullptr;
    const Record& record = records_[id.index()];
    const bool is_named = record.kind == Kind::kBlock || record.kind == Kind::kSmall;
    return is_named && record.generation == id.generation() ? &record : nullptr;
  }
  Record& record(BlockId id);
  [[nodiscard]] const Record& record(BlockId id) const;
  [[nodiscard]] static bool is_fixed(const Record& record) {
    return record.pins > 0 || record.tenure != Tenure::kEvictable;
  }
  void change_tenure(Record& record, Tenure tenure) noexcept;
  // What the search reads, and when it gets to know (block_facts.cpp).
  void note_change(BlockIndex index, bool was_fixed) noexcept;
  void publish_all() const noexcept;

  BlockIndex reserve_record();
  Record& begin_block(BlockIndex index, Kind kind, Extent extent) noexcept;
  void end_block(BlockIndex index) noexcept;

  // kNoBlock where there is no room.
  BlockIndex allocate_small(Grains size);
  struct Spot {
    Chunk* chunk = nullptr;  // none: there is no room
    int slot = 0;            // of the hole
    Grains begin = 0;        // within the hole
  };
  [[nodiscard]] Spot choose_spot(Grains size, Placement placement);
  BlockIndex allocate_block(Spot spot, Grains size, Placement placement, Kind kind);
  void release_extent(BlockIndex index) noexcept;
  void retract_long_lived_end(Extent hole) noexcept;

  Fit fit_;
  Bytes bytes_;
  // Facts about blocks change several times per operator and are read once per search, so they reach the
  // columns only then.
  mutable AddressOrder order_;
  mutable std::vector<BlockIndex> unpublished_;
  std::optional<HolesBySize> holes_by_size_;  // where the fit needs it
  SmallArea small_;
  Grains long_lived_end_ = 0;
  Bytes held_bytes_ = 0;
  Bytes evictable_bytes_ = 0;
  std::size_t block_count_ = 0;
  mutable std::vector<Record> records_;
  std::vector<BlockIndex> unused_;
  PoolListener* listener_;
  Backing& backing_;
  std::byte* base_;
};

}  // namespace coop
