#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "core/pool/pool.hpp"

namespace coop {

// Copies within a device run at terabytes a second; what matters is that copying beats recomputing. For when
// nothing better is known.
inline constexpr double kCopyNsPerByte = 0.0005;

// What it costs to empty a stretch of the pool, in nanoseconds.
struct CompactionTerms {
  double copy_ns_per_byte = kCopyNsPerByte;
  // A block that was used this long before `now` costs what it costs, one that was used half as long before
  // twice as much, and one that was used ever so long before a sixteenth: where victims have been used just now,
  // nothing else would cost anything. 0: how long does not matter.
  double usual_staleness = 0;
  double now = 0;
  // Evictable blocks that cost this much are moved like others; 0: all of them are.
  double dear = std::numeric_limits<double>::infinity();
  // What costs this much in all is not worth it.
  double most = std::numeric_limits<double>::infinity();

  [[nodiscard]] double cost_of_evicting(const BlockFacts& block) const {
    return static_cast<double>(block.cost) * usual() / staleness(block.last_use);
  }
  // To the last bit: whoever is as dear as `dear` is not cheap.
  [[nodiscard]] bool is_cheap(float cost, double last_use) const {
    return static_cast<double>(cost) * usual() / staleness(last_use) < dear;
  }
  [[nodiscard]] bool evicts(const BlockFacts& block) const {
    return !block.is_fixed && is_cheap(block.cost, block.last_use);
  }

 private:
  [[nodiscard]] double usual() const { return usual_staleness > 0 ? usual_staleness : 1; }
  [[nodiscard]] double staleness(double last_use) const {
    constexpr double kOldest = 16;
    const double oldest = kOldest * usual_staleness;
    const double age = now - last_use;  // selects, not std::max: see score_chunk
    const double counted = age < oldest ? age : oldest;
    return usual_staleness > 0 && counted > 1 ? counted : 1;
  }
};

struct Stretch {
  Extent extent;
  double cost = 0;
};

// A stretch of the pool in which there is room for the request, once some evictable blocks have gone and the
// others, movable or evictable, have been pushed to its left end.
//
//     before   | E |  hole  | M | E | M |        E evictable, M movable
//     after    | M | M |       room     |
//
// Cheapest first: what is evicted costs its recomputation, what is moved costs its copy. Pinned and
// staying blocks break the stretch. O(n).
[[nodiscard]] std::optional<Stretch> find_stretch_to_compact(const Pool& pool, Grains request,
                                                             const CompactionTerms& terms);

}  // namespace coop
