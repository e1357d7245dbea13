#pragma once

// Note [What is left over]
//
// Blocks have few sizes. A request of 40 MiB for which one of 64 goes leaves 24 over, where the next request of 40 does
// not fit; ten such requests later a tenth of the pool lies between their blocks:
//
//     before   | 64 | 64 | 64 |        oldest on the right: that is the order in which they go
//     from the left  | 40 |24| 40 |24| 40 |24|
//     this way       | 40 | 40 | 40 |  | 8  | 64 |        the third needs no victim
//
// What is left over is of use if it grows. So it should lie beside the neighbour that goes next: the one with the lower
// score. The block goes to the other end of its hole.

#include <optional>

#include "core/pool/pool.hpp"

namespace coop {

// Where else in its hole a block had better lie, which has just been put at one end of it. Nothing: where it is, or
// what is left over is more than `most`.
[[nodiscard]] std::optional<Bytes> better_end(const Pool& pool, BlockId id, Bytes most, double now);

}  // namespace coop
