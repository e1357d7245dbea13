#pragma once

// Scores: what it hurts to evict a block. A score is a function object
//
//     struct MyScore {
//       float operator()(const Candidate& block) const { return block.cost / block.staleness; }
//     };
//
// that is evaluated for a whole chunk at once; the compiler turns the loop into vector
// instructions. Costs and stalenesses are at least one nanosecond and finite, so scores are finite
// and above zero.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>

#include "core/pool/chunk.hpp"

namespace coop {

struct Candidate {
  float cost;         // nanoseconds to bring it back
  float staleness;    // nanoseconds since its last use
  float grains;       // its size
  float free_grains;  // holes beside it; only where the score says kWantsFreeBeside
};

template <typename T>
concept Score = requires(const T& score, const Candidate& block) {
  { score(block) } -> std::same_as<float>;
};

// The score of the Coop paper, c / s. Size needs no term there: the window weighs it.
struct CostOverStaleness {
  float operator()(const Candidate& block) const { return block.cost / block.staleness; }
};

template <typename T>
concept WantsFreeBeside = Score<T> && T::kWantsFreeBeside;

using ChunkScores = std::array<float, Chunk::kCapacity>;

// Free space beside each piece of a chunk; `before` and `after` are holes at the chunk's borders.
inline void measure_free_beside(const Chunk& chunk, Grains before, Grains after,
                                ChunkScores& beside) {
  beside.fill(0);
  const auto last = static_cast<std::size_t>(chunk.count) - 1;
  for (const int slot : SlotsOf(chunk.holes)) {
    const auto i = static_cast<std::size_t>(slot);
    const auto size = static_cast<float>(chunk.extent(slot).size());
    if (i > 0) beside[i - 1] += size;
    if (i < last) beside[i + 1] += size;
  }
  beside[0] += static_cast<float>(before);
  beside[last] += static_cast<float>(after);
}

// The score of every evictable piece, and `otherwise` for the others. May fill up to the next
// multiple of kLane past the end, with `otherwise`.
template <Score S>
void score_chunk(const Chunk& chunk, double now, const S& score, float otherwise,
                 const ChunkScores& beside, float* scores) {
  // Selects rather than std::max, whose references keep the compiler from using vectors.
  const int count = (chunk.count + Chunk::kLane - 1) / Chunk::kLane * Chunk::kLane;
  for (int i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const auto age = static_cast<float>(now - chunk.last_use[k]);
    const Candidate block{.cost = chunk.cost[k],
                          .staleness = age < 1.0F ? 1.0F : age,
                          .grains = static_cast<float>(chunk.begin[k + 1] - chunk.begin[k]),
                          .free_grains = beside[k]};
    const float value = score(block);
    scores[k] = block.cost > 0 ? value : otherwise;
  }
}

}  // namespace coop
