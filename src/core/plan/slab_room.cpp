#include "core/plan/slab_room.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace coop {
namespace {

// In grains. As in the pool: slabs of a 256th of it and at most 256 KiB, cut into at most 64 slots.
constexpr Bytes kMostSlab = 256_KiB / kBlockAlignment;
constexpr Bytes kSlabsInPool = 256;
constexpr Bytes kMostSlots = 64;

// Four classes to an octave.
std::vector<Bytes> slot_classes(Bytes largest) {
  std::vector<Bytes> classes;
  for (Bytes slot = 1; slot < largest; slot += std::max<Bytes>(1, std::bit_floor(slot) / 4)) {
    classes.push_back(slot);
  }
  if (largest > 0) classes.push_back(largest);
  return classes;
}

}  // namespace

Bytes slab_room(std::span<const PlannedBlock> blocks, Bytes small_limit, Bytes budget,
                std::size_t moments) {
  const std::vector<Bytes> classes = slot_classes(whole_grains(small_limit) / kBlockAlignment);
  std::vector<std::vector<std::int32_t>> changes(classes.size());  // by moment
  for (const PlannedBlock& block : blocks) {
    if (block.bytes == 0) continue;
    const Bytes grains = whole_grains(block.bytes) / kBlockAlignment;
    const auto size = std::lower_bound(classes.begin(), classes.end(), grains) - classes.begin();
    std::vector<std::int32_t>& of_size = changes[static_cast<std::size_t>(size)];
    of_size.resize(moments + 1);
    ++of_size[block.from];
    --of_size[block.until + 1];
  }
  const Bytes slab = std::clamp<Bytes>(budget / kBlockAlignment / kSlabsInPool, 1, kMostSlab);
  Bytes room = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::int32_t now = 0;
    std::int32_t most = 0;
    for (const std::int32_t change : changes[i]) most = std::max(most, now += change);
    if (most == 0) continue;
    const Bytes slots = std::clamp<Bytes>(slab / classes[i], 1, kMostSlots);
    const Bytes slabs = (static_cast<Bytes>(most) + slots - 1) / slots + 1;
    room += slabs * slots * classes[i] * kBlockAlignment;
  }
  return room;
}

}  // namespace coop
