#pragma once

// Note [Moving out]
//
// What running operators read and write can neither go nor move. Such a block in the middle of the pool leaves a
// stretch on either side, and a large request may fit neither, though there is room for it in both together:
//
//     before   | M | E | M |  pinned  | E | M | hole |       E evictable, M movable
//     after    |   room    |  pinned  | M | M | M |
//
// Then some of what lies in one stretch moves into others. Evictable blocks that are cheap go on the way, in all
// stretches that take part; dear ones move like what cannot go: a gradient in the middle of a backward pass would
// take the whole step with it, and there may be room for it a few blocks further on.

#include <cstddef>
#include <optional>
#include <vector>

#include "core/engine/compaction.hpp"
#include "core/pool/pool.hpp"

namespace coop {

// What is done instead of evicting victims, once it has been decided.
struct Moves {
  struct Part {
    Extent extent;
    std::vector<BlockId> goes;
    std::vector<BlockId> stays;  // pushed to its left end, in this order
    Grains held = 0;             // by those that stay
    double cost = 0;             // of what goes
  };
  struct Mover {
    BlockId block;
    std::size_t into = 0;  // which of the others
  };
  Part room;                  // for the request, in the end
  std::vector<Part> others;   // each all between two blocks that may not move
  std::vector<Mover> movers;  // out of `room`, in this order
  double cost = 0;
};

// The cheapest way that costs less than `terms.most`, with no more than a guess of what is copied: all that stays. For
// each stretch movers are chosen greedily: the smallest that is enough, or the largest that fits anywhere.
[[nodiscard]] std::optional<Moves> find_moving_out(const Pool& pool, Grains request,
                                                   const CompactionTerms& terms);

}  // namespace coop
