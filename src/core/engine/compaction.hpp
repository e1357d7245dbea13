#pragma once

#include <optional>

#include "core/pool/pool.hpp"

namespace coop {

// Copies within a device run at terabytes a second; what matters is that copying beats recomputing.
inline constexpr double kCopyNsPerByte = 0.0005;

// The last resort where no window exists because blocks that cannot be recomputed lie scattered: a
// stretch of the pool in which holes and evictable blocks together have room for the request, once
// the movable blocks among them have been pushed to its left end.
//
//     before   | E |  hole  | M | E | M |        E evictable, M movable
//     after    | M | M |       room     |
//
// Cheapest first: what is evicted costs its recomputation, what is moved costs its copy. Pinned and
// staying blocks break the stretch. O(n).
[[nodiscard]] std::optional<Extent> find_stretch_to_compact(const Pool& pool, Grains request);

}  // namespace coop
