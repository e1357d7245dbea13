#include "core/pool/pool.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace coop {
namespace {

// Costs the search may divide and add up without ever meeting zero, infinity or NaN.
constexpr double kLeastCost = 1.0;
constexpr double kMostCost = 1e15;

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
  return to_grains(std::min(options.small_limit, options.bytes));
}

Grains slab_grains(Bytes pool_bytes) {
  return std::clamp(static_cast<Grains>(pool_bytes / kGrainBytes) / kSlabsInPool, 1, kMostSlab);
}

}  // namespace

Pool::Pool(const PoolOptions& options, Backing& backing)
    : fit_(options.fit),
      order_(pool_grains(options.bytes)),
      small_(small_grains(options), slab_grains(options.bytes)),
      backing_(backing),
      base_(backing.acquire(bytes())) {
  if (reinterpret_cast<std::uintptr_t>(base_) % kGrainBytes != 0) {
    backing_.give_back(base_, bytes());
    throw InvalidArgument("the pool's memory must begin at a multiple of 512 bytes");
  }
  if (fit_ == Fit::kBest) holes_by_size_.emplace(order_.total());
}

Pool::~Pool() { backing_.give_back(base_, bytes()); }

// --- names ---

const Pool::Record* Pool::find(BlockId id) const noexcept {
  if (id.index >= records_.size()) return nullptr;
  const Record& record = records_[id.index];
  const bool is_named = record.kind == Kind::kBlock || record.kind == Kind::kSmall;
  return is_named && record.generation == id.generation ? &record : nullptr;
}

const Pool::Record& Pool::record(BlockId id) const {
  const Record* found = find(id);
  if (found == nullptr) {
    throw InvalidArgument("there is no block " + std::to_string(id.index) + "." +
                          std::to_string(id.generation) + ": it was freed, or never allocated");
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
    records_.emplace_back();
    unused_.push_back(static_cast<BlockIndex>(records_.size() - 1));
  }
  return unused_.back();
}

BlockId Pool::begin_block(BlockIndex index, Kind kind, Placement placement,
                          Bytes requested) noexcept {
  COOP_CHECK(unused_.back() == index);
  unused_.pop_back();
  Record& record = records_[index];
  record.kind = kind;
  record.placement = placement;
  record.requested = requested;
  if (kind != Kind::kSlab) ++block_count_;
  return {index, record.generation};
}

void Pool::end_block(BlockIndex index) noexcept {
  Record& record = records_[index];
  if (record.kind != Kind::kSlab) --block_count_;
  record = {.generation = record.generation + 1};
  unused_.push_back(index);
}

// --- allocating and freeing ---

std::optional<BlockId> Pool::allocate(Bytes requested, Placement placement) {
  if (requested == 0) throw InvalidArgument("a block of 0 bytes cannot be allocated");
  if (requested > bytes()) {
    throw InvalidArgument("a block of " + std::to_string(requested) +
                          " bytes is larger than the pool, which has " + std::to_string(bytes()));
  }
  const Grains size = to_grains(requested);
  for (;;) {
    std::optional<BlockId> id;
    if (small_.takes(size)) id = allocate_small(size, requested);
    if (!id) id = allocate_block(size, placement, requested, Kind::kBlock);
    if (id) {
      held_bytes_ += to_bytes(extent_of(id->index).size());
      if constexpr (kFullChecks) validate();
      return id;
    }
    // Slabs that are kept empty for speed are the first to go; there is one per class at the most.
    const auto slab = small_.give_up_empty_slab();
    if (!slab) return std::nullopt;
    release_extent(*slab);
    end_block(*slab);
  }
}

std::optional<BlockId> Pool::allocate_small(Grains size, Bytes requested) {
  if (!small_.has_room(size)) {
    small_.expect_slab();
    const auto slab = allocate_block(small_.slab_size(size), Placement::kLongLived, 0, Kind::kSlab);
    if (!slab) return std::nullopt;
    small_.add_slab(size, extent_of(slab->index), slab->index);
  }
  const BlockIndex index = reserve_record();
  records_[index].slot = small_.take(size);
  return begin_block(index, Kind::kSmall, Placement::kLongLived, requested);
}

std::optional<BlockId> Pool::allocate_block(Grains size, Placement placement, Bytes requested,
                                            Kind kind) {
  const auto choice = choose_place(size, placement);
  if (!choice) return std::nullopt;
  const BlockIndex index = reserve_record();
  if (holes_by_size_) holes_by_size_->expect_block();
  const Extent hole = choice->hole.extent();
  try {
    order_.take(choice->hole, choice->extent, index, {.is_fixed = true});
  } catch (...) {
    if (holes_by_size_) holes_by_size_->forget_block();
    throw;
  }
  if (holes_by_size_) holes_by_size_->note_taken(hole, choice->extent);
  if (placement == Placement::kLongLived && choice->extent.begin <= long_lived_end_) {
    long_lived_end_ = std::max(long_lived_end_, choice->extent.end);
  }
  return begin_block(index, kind, placement, requested);
}

std::optional<Pool::Choice> Pool::choose_place(Grains size, Placement placement) const {
  const auto at_left = [size](AddressOrder::Place hole, Grains from = 0) {
    const Grains begin = std::max(hole.extent().begin, from);
    return Choice{hole, {begin, begin + size}};
  };
  const auto at_right = [size](AddressOrder::Place hole) {
    return Choice{hole, {hole.extent().end - size, hole.extent().end}};
  };
  if (holes_by_size_) {
    const auto best = holes_by_size_->best_fit(size);
    if (!best) return std::nullopt;
    const AddressOrder::Place hole = order_.piece_at(best->begin);
    return placement == Placement::kCheap ? at_right(hole) : at_left(hole);
  }
  if (placement == Placement::kCheap) {
    const auto hole = order_.rightmost_hole(size);
    return hole ? std::optional(at_right(*hole)) : std::nullopt;
  }
  if (placement == Placement::kExpensive) {
    for (const Grains from : {long_lived_end_ + order_.total() / kHeadroom, long_lived_end_}) {
      if (const auto hole = order_.leftmost_hole(size, from)) return at_left(*hole, from);
    }
  }
  const auto hole = order_.leftmost_hole(size);
  return hole ? std::optional(at_left(*hole)) : std::nullopt;
}

bool Pool::free(BlockId id) noexcept {
  const Record* record = find(id);
  if (record == nullptr) return false;
  held_bytes_ -= to_bytes(extent_of(id.index).size());
  if (record->kind == Kind::kSmall) {
    if (const auto slab = small_.release(record->slot.slab, record->slot.number)) {
      release_extent(*slab);
      end_block(*slab);
    }
  } else {
    release_extent(id.index);
  }
  end_block(id.index);
  if constexpr (kFullChecks) validate();
  return true;
}

void Pool::release_extent(BlockIndex index) noexcept {
  const AddressOrder::Joined joined = order_.release(index);
  if (holes_by_size_) holes_by_size_->note_released(joined);
  retract_long_lived_end(joined.hole);
}

// The long-lived blocks end where a hole that reaches their end begins.
void Pool::retract_long_lived_end(Extent hole) noexcept {
  if (hole.begin < long_lived_end_ && long_lived_end_ <= hole.end) long_lived_end_ = hole.begin;
}

// --- what is known of a block ---

bool Pool::is_fixed(const Record& record) {
  return record.pins > 0 || record.tenure != Tenure::kEvictable;
}

// Brings the columns that the search reads in line with the record.
void Pool::publish(BlockIndex index) noexcept {
  const Record& record = records_[index];
  if (record.kind != Kind::kBlock) return;
  order_.set_facts(index, {record.cost, record.last_use, is_fixed(record)});
}

void Pool::set_tenure(BlockId id, Tenure tenure) {
  Record& known = record(id);
  if (tenure == Tenure::kEvictable && known.cost <= 0) {
    throw InvalidArgument("a block becomes evictable with set_evictable, which knows its cost");
  }
  known.tenure = tenure;
  publish(id.index);
}

void Pool::set_evictable(BlockId id, double cost, double last_use) {
  Record& known = record(id);
  if (!std::isfinite(cost) || cost < 0 || !std::isfinite(last_use)) {
    throw InvalidArgument(
        "a block's cost must be finite and not negative, its last use finite; got " +
        std::to_string(cost) + " and " + std::to_string(last_use));
  }
  // Small blocks are not worth evicting.
  if (known.kind == Kind::kSmall) return;
  known.cost = static_cast<float>(std::clamp(cost, kLeastCost, kMostCost));
  known.last_use = last_use;
  known.tenure = Tenure::kEvictable;
  publish(id.index);
}

void Pool::touch(BlockId id, double now) {
  Record& known = record(id);
  if (!std::isfinite(now)) throw InvalidArgument("a block's last use must be a finite time");
  known.last_use = now;
  publish(id.index);
}

void Pool::pin(BlockId id) {
  ++record(id).pins;
  publish(id.index);
}

void Pool::unpin(BlockId id) {
  Record& known = record(id);
  if (known.pins == 0) throw InvalidArgument("a block is unpinned that is not pinned");
  --known.pins;
  publish(id.index);
}

bool Pool::is_movable(BlockIndex index) const {
  const Record& record = records_[index];
  return record.kind == Kind::kBlock && record.pins == 0 && record.tenure != Tenure::kStays;
}

std::optional<Bytes> Pool::slide_target(BlockId id) const {
  static_cast<void>(record(id));
  if (!is_movable(id.index)) return std::nullopt;
  const auto left = order_.left_neighbour(order_.place_of(id.index));
  if (!left || !left->is_hole()) return std::nullopt;
  return to_bytes(left->extent().begin);
}

Bytes Pool::slide_left(BlockId id) {
  const auto target = slide_target(id);
  if (!target) {
    throw InvalidArgument("the block cannot slide left: it may not move, or nothing is free there");
  }
  const AddressOrder::Joined joined = order_.slide_left(id.index);
  if (holes_by_size_) holes_by_size_->note_slid(joined);
  retract_long_lived_end(joined.hole);
  if constexpr (kFullChecks) validate();
  return *target;
}

Extent Pool::extent_of(BlockIndex index) const {
  const Record& record = records_[index];
  return record.kind == Kind::kSmall ? record.slot.extent : order_.place_of(index).extent();
}

BlockInfo Pool::info(BlockId id) const {
  const Record& known = record(id);
  const Extent extent = extent_of(id.index);
  return {.offset = to_bytes(extent.begin),
          .bytes = to_bytes(extent.size()),
          .requested_bytes = known.requested,
          .placement = known.placement,
          .tenure = known.tenure,
          .pins = known.pins,
          .cost = known.cost,
          .last_use = known.last_use,
          .is_small = known.kind == Kind::kSmall};
}

std::byte* Pool::address(BlockId id) const { return base_ + info(id).offset; }

// --- checking ---

void Pool::validate() const {
  order_.validate();
  small_.validate();
  Grains held = 0;
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
      held += piece.size();
    }
  }
  COOP_CHECK(!holes_by_size_ || holes_by_size_->holes().size() == holes);
  COOP_CHECK(to_bytes(held - small_.free_grains()) == held_bytes_);
  const auto named = std::count_if(records_.begin(), records_.end(), [](const Record& record) {
    return record.kind == Kind::kBlock || record.kind == Kind::kSmall;
  });
  COOP_CHECK(static_cast<std::size_t>(named) == block_count_);
}

}  // namespace coop
