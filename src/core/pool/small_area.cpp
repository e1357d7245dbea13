#include "core/pool/small_area.hpp"

#include <algorithm>
#include <bit>

#include "core/base/check.hpp"

namespace coop {

SmallArea::SmallArea(Grains largest, Grains slab_size)
    : largest_(largest), slab_target_(slab_size) {
  // Four classes to an octave keep what rounding up wastes under a quarter.
  for (Grains slot = 1; slot < largest;) {
    classes_.push_back({.slot = slot});
    const auto octave = static_cast<Grains>(std::bit_floor(static_cast<std::uint32_t>(slot)));
    slot += std::max(1, octave / 4);
  }
  if (largest > 0) classes_.push_back({.slot = largest});
}

std::size_t SmallArea::class_of(Grains size) const {
  const auto found =
      std::lower_bound(classes_.begin(), classes_.end(), size,
                       [](const Class& c, Grains wanted) { return c.slot < wanted; });
  COOP_CHECK(found != classes_.end());
  return static_cast<std::size_t>(found - classes_.begin());
}

Grains SmallArea::slot_size(Grains size) const { return classes_[class_of(size)].slot; }

Grains SmallArea::slab_size(Grains size) const {
  const Grains slot = slot_size(size);
  return slot * std::clamp(slab_target_ / slot, 1, 64);
}

bool SmallArea::has_room(Grains size) const {
  return classes_[class_of(size)].first_with_room != kNone;
}

SmallArea::Slot SmallArea::take(Grains size) noexcept {
  Class& size_class = classes_[class_of(size)];
  const SlabIndex index = size_class.first_with_room;
  COOP_CHECK(index != kNone);
  Slab& slab = slabs_[index];
  const int number = std::countr_zero(slab.free);
  slab.free &= slab.free - 1;
  if (size_class.empty == index) size_class.empty = kNone;
  if (slab.free == 0) unlink(index);
  free_ -= size_class.slot;
  const Grains begin = slab.extent.begin + number * size_class.slot;
  return {{index, static_cast<std::uint8_t>(number)}, {begin, begin + size_class.slot}};
}

void SmallArea::expect_slab() {
  if (!unused_.empty()) return;
  unused_.reserve(slabs_.size() + 1);  // so that remove() never allocates
  slabs_.emplace_back();
  unused_.push_back(static_cast<SlabIndex>(slabs_.size() - 1));
}

void SmallArea::add_slab(Grains size, Extent extent, BlockIndex block) noexcept {
  const SlabIndex index = unused_.back();
  unused_.pop_back();
  const std::size_t size_class = class_of(size);
  const int slots = extent.size() / classes_[size_class].slot;
  const std::uint64_t all = Chunk::low_bits(slots);
  slabs_[index] = {.extent = extent,
                   .block = block,
                   .size_class = static_cast<std::uint8_t>(size_class),
                   .all = all,
                   .free = all};
  free_ += slots * classes_[size_class].slot;
  classes_[size_class].empty = index;
  link(index);
}

std::optional<BlockIndex> SmallArea::release(SlotId slot) noexcept {
  const SlabIndex index = slot.slab;
  Slab& slab = slabs_[index];
  Class& size_class = classes_[slab.size_class];
  if (slab.free == 0) link(index);
  slab.free |= std::uint64_t{1} << slot.number;
  free_ += size_class.slot;
  if (slab.free != slab.all) return std::nullopt;
  if (size_class.empty == kNone) {
    size_class.empty = index;
    return std::nullopt;
  }
  return remove(index);
}

std::optional<BlockIndex> SmallArea::give_up_empty_slab() noexcept {
  for (Class& size_class : classes_) {
    if (size_class.empty == kNone) continue;
    const SlabIndex index = size_class.empty;
    size_class.empty = kNone;
    return remove(index);
  }
  return std::nullopt;
}

BlockIndex SmallArea::remove(SlabIndex index) noexcept {
  unlink(index);
  Slab& slab = slabs_[index];
  free_ -= std::popcount(slab.all) * classes_[slab.size_class].slot;
  const BlockIndex block = slab.block;
  slab = {};
  unused_.push_back(index);
  return block;
}

void SmallArea::link(SlabIndex index) noexcept {
  Slab& slab = slabs_[index];
  SlabIndex& first = classes_[slab.size_class].first_with_room;
  slab.previous = kNone;
  slab.next = first;
  if (first != kNone) slabs_[first].previous = index;
  first = index;
}

void SmallArea::unlink(SlabIndex index) noexcept {
  const Slab& slab = slabs_[index];
  if (slab.previous != kNone) {
    slabs_[slab.previous].next = slab.next;
  } else {
    classes_[slab.size_class].first_with_room = slab.next;
  }
  if (slab.next != kNone) slabs_[slab.next].previous = slab.previous;
}

void SmallArea::validate() const {
  Grains free = 0;
  for (const Slab& slab : slabs_) {
    if (slab.block == kNoBlock) continue;
    COOP_CHECK((slab.free & ~slab.all) == 0);
    free += std::popcount(slab.free) * classes_[slab.size_class].slot;
  }
  COOP_CHECK(free == free_);
  for (const Class& size_class : classes_) {
    SlabIndex before = kNone;
    for (SlabIndex index = size_class.first_with_room; index != kNone; index = slabs_[index].next) {
      COOP_CHECK(slabs_[index].free != 0);
      COOP_CHECK(slabs_[index].previous == before);
      before = index;
    }
    COOP_CHECK(size_class.empty == kNone ||
               slabs_[size_class.empty].free == slabs_[size_class.empty].all);
  }
}

}  // namespace coop
