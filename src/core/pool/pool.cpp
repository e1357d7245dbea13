#include "core/pool/pool.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace coop {
namespace {

// Slabs are large enough to hold many small blocks and small against the pool.
constexpr Grains kMostSlab = to_grains(256_KiB);
constexpr Grains kSlabsInPool = 256;

// The part of the pool that is left to long-lived blocks to grow into while there is room
// elsewhere.
constexpr Grains kHeadroom = 16;

Grains pool_grains(Bytes bytes) {
  if (bytes < kGrainBytes || bytes > kMaxPoolBytes) {
    throw InvalidArgument("a pool of " + std::to_string(bytes) +
                          " bytes cannot be made: it takes " + std::to_string(kGrainBytes) +
                          " bytes to " + format_bytes(kMaxPoolBytes));
  }
  return static_cast<Grains>(bytes / kGrainBytes);
}

Grains small_grains(const PoolOptions& options) {
  if (options.small_limit > to_bytes(kMostSlab)) {
    throw InvalidArgument("blocks of up to " + format_bytes(options.small_limit) +
                          " cannot be called small; the most is " +
                          format_bytes(to_bytes(kMostSlab)));
  }
  return to_grains(std::min(options.small_limit, options.bytes));
}

Grains slab_grains(Bytes pool_bytes) {
  return std::clamp(static_cast<Grains>(pool_bytes / kGrainBytes) / kSlabsInPool, 1, kMostSlab);
}

}  // namespace

Bytes Pool::slab_bytes(Bytes pool_bytes) { return to_bytes(slab_grains(pool_bytes)); }

Pool::Pool(const PoolOptions& options, Backing& backing)
    : fit_(options.fit),
      bytes_(to_bytes(pool_grains(options.bytes))),
      order_(options.ignores_addresses ? pool_grains(kMaxPoolBytes) : pool_grains(options.bytes)),
      holes_by_size_(fit_ == Fit::kBest ? std::optional<HolesBySize>(order_.total())
                                        : std::nullopt),
      small_(small_grains(options), slab_grains(options.bytes)),
      listener_(options.listener),
      backing_(backing),
      base_(backing.acquire(to_bytes(order_.total()))) {
  if (reinterpret_cast<std::uintptr_t>(base_) % kGrainBytes != 0) {
    backing_.give_back(base_, to_bytes(order_.total()));
    throw InvalidArgument("the pool's memory must begin at a multiple of 512 bytes");
  }
}

Pool::~Pool() { backing_.give_back(base_, to_bytes(order_.total())); }

// --- names ---

const Pool::Record& Pool::record(BlockId id) const {
  const Record* found = find(id);
  if (found == nullptr) {
    throw InvalidArgument("there is no block " + std::to_string(id.index()) + "." +
                          std::to_string(id.generation()) + ": it was freed, or never allocated");
  }
  return *found;
}

Pool::Record& Pool::record(BlockId id) {
  return const_cast<Record&>(static_cast<const Pool*>(this)->record(id));
}

bool Pool::contains(BlockId id) const noexcept { return find(id) != nullptr; }

// A free entry of records_. May throw; nothing has changed then.
BlockIndex Pool::reserve_record() {
  if (unused_.empty()) {
    if (unused_.capacity() <= records_.size()) unused_.reserve(2 * records_.size() + 1);
    unpublished_.reserve(unused_.capacity());
    records_.emplace_back();
    unused_.push_back(static_cast<BlockIndex>(records_.size() - 1));
  }
  return unused_.back();
}

Pool::Record& Pool::begin_block(BlockIndex index, Kind kind, Extent extent) noexcept {
  COOP_CHECK(unused_.back() == index);
  unused_.pop_back();
  Record& record = records_[index];
  record.kind = kind;
  record.extent = extent;
  record.pins = 0;
  record.cost = 0;
  record.last_use = 0;
  record.tenure = Tenure::kStays;
  if (kind != Kind::kSlab) {
    ++block_count_;
    held_bytes_ += to_bytes(extent.size());
  }
  return record;
}

void Pool::end_block(BlockIndex index) noexcept {
  Record& record = records_[index];
  if (record.kind != Kind::kSlab) {
    --block_count_;
    held_bytes_ -= to_bytes(record.extent.size());
  }
  change_tenure(record, Tenure::kStays);
  record.kind = Kind::kUnused;
  // A record whose generations are used up is not used again, so that names never are.
  if (++record.generation != std::numeric_limits<std::uint32_t>::max()) unused_.push_back(index);
}

// --- allocating and freeing ---

std::optional<BlockId> Pool::allocate(Bytes requested, Placement placement) {
  if (requested == 0) throw InvalidArgument("a block of 0 bytes cannot be allocated");
  if (requested > bytes()) {
    throw InvalidArgument("a block of " + std::to_string(requested) +
                          " bytes is larger than the pool, which has " + std::to_string(bytes()));
  }
  const Grains size = to_grains(requested);
  if (to_bytes(size) > free_bytes()) return std::nullopt;
  for (;;) {
    BlockIndex index = small_.takes(size) ? allocate_small(size) : kNoBlock;
    if (index == kNoBlock)
      index = allocate_block(choose_spot(size, placement), size, placement, Kind::kBlock);
    if (index != kNoBlock) {
      records_[index].requested = requested;
      if constexpr (kFullChecks) validate();
      return id_of(index);
    }
    // Slabs that are kept empty for speed are the first to go.
    if (!trim()) return std::nullopt;
  }
}

std::optional<BlockId> Pool::allocate_at(Bytes requested, Bytes offset, Placement placement) {
  if (requested == 0 || offset % kGrainBytes != 0 || offset > bytes() ||
      requested > bytes() - offset) {
    throw InvalidArgument("a block of " + std::to_string(requested) + " bytes at " +
                          std::to_string(offset) + " is not within the pool's grains");
  }
  const Grains size = to_grains(requested);
  const auto begin = static_cast<Grains>(offset / kGrainBytes);
  const AddressOrder::Place place = order_.piece_at(begin);
  if (!place.is_hole() || place.extent().end - begin < size) return std::nullopt;
  const BlockIndex index =
      allocate_block({place.chunk, place.slot, begin}, size, placement, Kind::kBlock);
  records_[index].requested = requested;
  if constexpr (kFullChecks) validate();
  return id_of(index);
}

bool Pool::trim() noexcept {
  bool has_trimmed = false;
  while (const auto slab = small_.give_up_empty_slab()) {
    release_extent(*slab);
    end_block(*slab);
    has_trimmed = true;
  }
  return has_trimmed;
}

BlockIndex Pool::allocate_small(Grains size) {
  if (!small_.has_room(size)) {
    small_.expect_slab();
    const Grains slab_size = small_.slab_size(size);
    const BlockIndex slab = allocate_block(choose_spot(slab_size, Placement::kLongLived), slab_size,
                                           Placement::kLongLived, Kind::kSlab);
    if (slab == kNoBlock) return kNoBlock;
    small_.add_slab(size, records_[slab].extent, slab);
  }
  const BlockIndex index = reserve_record();
  const SmallArea::Slot slot = small_.take(size);
  Record& record = begin_block(index, Kind::kSmall, slot.extent);
  record.slot = slot.id;
  record.placement = Placement::kLongLived;
  return index;
}

BlockIndex Pool::allocate_block(Spot spot, Grains size, Placement placement, Kind kind) {
  if (spot.chunk == nullptr) return kNoBlock;
  const BlockIndex index = reserve_record();
  if (holes_by_size_) holes_by_size_->expect_block();
  const Extent hole = spot.chunk->extent(spot.slot);
  const Extent extent{spot.begin, spot.begin + size};
  try {
    order_.take({spot.chunk, spot.slot}, extent, index, {.is_fixed = true});
  } catch (...) {
    if (holes_by_size_) holes_by_size_->forget_block();
    throw;
  }
  if (holes_by_size_) holes_by_size_->note_taken(hole, extent);
  if (placement == Placement::kLongLived && extent.begin <= long_lived_end_) {
    long_lived_end_ = std::max(long_lived_end_, extent.end);
  }
  begin_block(index, kind, extent).placement = placement;
  return index;
}

Pool::Spot Pool::choose_spot(Grains size, Placement placement) {
  const bool is_at_right = placement == Placement::kCheap;
  AddressOrder::Place hole;
  Grains from = 0;
  if (holes_by_size_) {
    if (const auto best = holes_by_size_->best_fit(size)) hole = order_.piece_at(best->begin);
  } else if (is_at_right) {
    hole = order_.rightmost_hole(size);
  } else {
    hole = order_.leftmost_hole(size);
    // Expensive blocks go behind the headroom, or else behind the long-lived blocks, or else here.
    const Grains headroom_end = long_lived_limit();
    if (placement == Placement::kExpensive && hole && hole.extent().begin < headroom_end) {
      for (const Grains start : {headroom_end, long_lived_end_}) {
        const AddressOrder::Place behind = order_.leftmost_hole(size, start);
        if (!behind) continue;
        hole = behind;
        from = start;
        break;
      }
    }
  }
  if (!hole) return {};
  const Extent extent = hole.extent();
  return {hole.chunk, hole.slot, is_at_right ? extent.end - size : std::max(extent.begin, from)};
}

bool Pool::free(BlockId id) noexcept {
  const Record* record = find(id);
  if (record == nullptr) return false;
  if (listener_ != nullptr) listener_->block_goes(id);
  if (record->kind == Kind::kSmall) {
    if (const auto slab = small_.release(record->slot)) {
      release_extent(*slab);
      end_block(*slab);
    }
  } else {
    release_extent(id.index());
  }
  end_block(id.index());
  if constexpr (kFullChecks) validate();
  return true;
}

void Pool::release_extent(BlockIndex index) noexcept {
  const AddressOrder::Joined joined = order_.release(index);
  if (holes_by_size_) holes_by_size_->note_released(joined);
  retract_long_lived_end(joined.hole);
}

Grains Pool::long_lived_limit() const {
  const Grains behind = order_.total() - long_lived_end_;
  return long_lived_end_ + std::min(order_.total() / kHeadroom, behind);
}

// The long-lived blocks end where a hole that reaches their end begins.
void Pool::retract_long_lived_end(Extent hole) noexcept {
  if (hole.begin < long_lived_end_ && long_lived_end_ <= hole.end) long_lived_end_ = hole.begin;
}

// --- checking ---

void Pool::validate() const {
  publish_all();
  order_.validate();
  small_.validate();
  Grains held = 0;
  Grains evictable = 0;
  std::size_t holes = 0;
  for (const Chunk* chunk : order_.chunks()) {
    for (int slot = 0; slot < chunk->count; ++slot) {
      const Extent piece = chunk->extent(slot);
      if (chunk->is_hole(slot)) {
        ++holes;
        COOP_CHECK(!holes_by_size_ ||
                   holes_by_size_->holes().contains({piece.size(), piece.begin}));
        COOP_CHECK(!(piece.begin < long_lived_end_ && long_lived_end_ <= piece.end));
        continue;
      }
      const Record& record = records_[chunk->block_at(slot)];
      COOP_CHECK(record.kind == Kind::kBlock || record.kind == Kind::kSlab);
      COOP_CHECK(chunk->is_fixed(slot) == is_fixed(record));
      COOP_CHECK(record.extent == piece);
      const BlockFacts facts = chunk->facts(slot);
      COOP_CHECK(facts.is_fixed || facts.last_use == record.last_use);
      COOP_CHECK(facts.is_fixed || facts.cost == record.cost);
      held += piece.size();
      if (record.tenure == Tenure::kEvictable) evictable += piece.size();
    }
  }
  COOP_CHECK(!holes_by_size_ || holes_by_size_->holes().size() == holes);
  COOP_CHECK(to_bytes(held - small_.free_grains()) == held_bytes_);
  COOP_CHECK(to_bytes(evictable) == evictable_bytes_);
  const auto named = std::count_if(records_.begin(), records_.end(), [](const Record& record) {
    return record.kind == Kind::kBlock || record.kind == Kind::kSmall;
  });
  COOP_CHECK(static_cast<std::size_t>(named) == block_count_);
}

}  // namespace coop
