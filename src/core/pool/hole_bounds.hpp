#pragma once

// For each chunk of the pool an upper bound on its largest hole, and for each group of 64 chunks an
// upper bound on those: where to look for a hole, and where not to.
//
// Bounds, not the sizes themselves, because most holes that are taken come back a moment later,
// when a temporary is freed. A bound goes up when a hole appears, at once; it comes down when
// somebody has looked in vain. Whoever looks in vain pays for a hole that was taken before, so that
// looking is amortised O(1) chunks, plus one entry per 4,096 pieces.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/pool/grain.hpp"

namespace coop {

class HoleBounds {
 public:
  // Room for this many chunks, so that insert does not throw.
  void reserve(std::size_t chunks) {
    chunk_.reserve(chunks);
    group_.reserve(chunks / kGroup + 1);
  }
  void insert(std::size_t chunk, Grains bound) {
    chunk_.insert(chunk_.begin() + static_cast<std::ptrdiff_t>(chunk), bound);
    regroup(chunk);
  }
  void erase(std::size_t chunk) noexcept {
    chunk_.erase(chunk_.begin() + static_cast<std::ptrdiff_t>(chunk));
    regroup(chunk);
  }

  [[nodiscard]] Grains of(std::size_t chunk) const { return chunk_[chunk]; }
  void raise(std::size_t chunk, Grains hole) noexcept {
    chunk_[chunk] = std::max(chunk_[chunk], hole);
    group_[chunk / kGroup] = std::max(group_[chunk / kGroup], hole);
  }
  // Somebody looked: no hole of the chunk is larger than this.
  void lower(std::size_t chunk, Grains largest) noexcept { chunk_[chunk] = largest; }

  // The first chunk from `from` on, or the last of all, that may have such a hole; or kNone.
  static constexpr std::size_t kNone = ~std::size_t{0};
  [[nodiscard]] std::size_t first(Grains at_least, std::size_t from) noexcept;
  [[nodiscard]] std::size_t last(Grains at_least) noexcept;

  // Throws InternalError where a group's bound is below one of its chunks'.
  void validate() const;

 private:
  static constexpr std::size_t kGroup = 64;

  [[nodiscard]] std::size_t end_of(std::size_t group) const {
    return std::min(chunk_.size(), (group + 1) * kGroup);
  }
  [[nodiscard]] Grains largest_in(std::size_t group) const noexcept;
  void regroup(std::size_t first_changed) noexcept;

  std::vector<Grains> chunk_;
  std::vector<Grains> group_;
};

}  // namespace coop
