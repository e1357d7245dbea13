#pragma once

#include <limits>

#include "core/policy/policy.hpp"
#include "core/policy/score.hpp"

namespace coop {

// Evicts the block with the lowest score, one at a time until the request fits. Scores are taken
// afresh for each victim, since every eviction changes its neighbours' costs.
template <Score S>
class OneByOnePolicy final : public Policy {
 public:
  using Policy::Policy;

  void choose_victims(const Pool& pool, const Request& request,
                      std::vector<BlockId>& victims) override {
    const auto chunks = pool.order().chunks();
    float lowest = std::numeric_limits<float>::infinity();
    BlockIndex victim = kNoBlock;
    ChunkScores scores{};
    ChunkScores beside{};
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const Chunk& chunk = *chunks[i];
      if constexpr (WantsFreeBeside<S>) {
        const Grains before = i == 0 ? 0 : hole_at(*chunks[i - 1], chunks[i - 1]->count - 1);
        const Grains after = i + 1 == chunks.size() ? 0 : hole_at(*chunks[i + 1], 0);
        measure_free_beside(chunk, before, after, beside);
      }
      score_chunk(chunk, request.now, S{}, std::numeric_limits<float>::infinity(), beside,
                  scores.data());
      const int slot = lowest_slot(chunk, scores, lowest);
      if (slot >= 0) victim = chunk.block_at(slot);
    }
    if (victim != kNoBlock) victims.push_back(pool.id_of(victim));
  }

 private:
  static Grains hole_at(const Chunk& chunk, int slot) {
    return chunk.is_hole(slot) ? chunk.extent(slot).size() : 0;
  }

  // The slot whose score is below `lowest`, which it lowers; -1 if there is none.
  static int lowest_slot(const Chunk& chunk, const ChunkScores& scores, float& lowest) {
    std::array<float, Chunk::kLane> least{};
    least.fill(lowest);
    const auto count = static_cast<std::size_t>(chunk.count);
    for (std::size_t i = 0; i < count; i += Chunk::kLane) {
      for (std::size_t k = 0; k < Chunk::kLane; ++k) least[k] = std::min(least[k], scores[i + k]);
    }
    const float here = *std::min_element(least.begin(), least.end());
    if (!(here < lowest)) return -1;
    lowest = here;
    return static_cast<int>(std::find(scores.begin(), scores.end(), here) - scores.begin());
  }
};

}  // namespace coop
