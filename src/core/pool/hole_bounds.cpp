#include "core/pool/hole_bounds.hpp"

#include "core/base/check.hpp"

namespace coop {
namespace {

// Bounds are passed over this many at a time, with vector instructions.
constexpr std::size_t kLane = 8;

bool any_at_least(Grains at_least, const Grains* bounds) {
  std::int32_t hits = 0;
  for (std::size_t i = 0; i < kLane; ++i) hits += static_cast<std::int32_t>(bounds[i] >= at_least);
  return hits != 0;
}

}  // namespace

std::size_t HoleBounds::first(Grains at_least, std::size_t from) noexcept {
  std::size_t chunk = from;
  for (std::size_t group = from / kGroup; group < group_.size(); ++group) {
    if (group_[group] >= at_least) {
      const std::size_t end = end_of(group);
      while (chunk + kLane <= end && !any_at_least(at_least, &chunk_[chunk])) chunk += kLane;
      for (; chunk < end; ++chunk) {
        if (chunk_[chunk] >= at_least) return chunk;
      }
      group_[group] = largest_in(group);
    }
    chunk = (group + 1) * kGroup;
  }
  return kNone;
}

std::size_t HoleBounds::last(Grains at_least) noexcept {
  for (std::size_t group = group_.size(); group-- > 0;) {
    if (group_[group] < at_least) continue;
    const std::size_t begin = group * kGroup;
    std::size_t end = end_of(group);
    while (end >= begin + kLane && !any_at_least(at_least, &chunk_[end - kLane])) end -= kLane;
    while (end-- > begin) {
      if (chunk_[end] >= at_least) return end;
    }
    group_[group] = largest_in(group);
  }
  return kNone;
}

Grains HoleBounds::largest_in(std::size_t group) const noexcept {
  Grains largest = 0;
  const std::size_t end = end_of(group);
  for (std::size_t chunk = group * kGroup; chunk < end; ++chunk) {
    largest = largest < chunk_[chunk] ? chunk_[chunk] : largest;
  }
  return largest;
}

void HoleBounds::regroup(std::size_t first_changed) noexcept {
  group_.resize((chunk_.size() + kGroup - 1) / kGroup);
  for (std::size_t group = first_changed / kGroup; group < group_.size(); ++group) {
    group_[group] = largest_in(group);
  }
}

void HoleBounds::validate() const {
  COOP_CHECK(group_.size() == (chunk_.size() + kGroup - 1) / kGroup);
  for (std::size_t group = 0; group < group_.size(); ++group) {
    COOP_CHECK(group_[group] >= largest_in(group));
  }
}

}  // namespace coop
