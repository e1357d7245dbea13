#pragma once

#include <vector>

#include "core/engine/evicting_pool.hpp"

namespace coop::testing {

inline std::uint64_t stopped_clock() { return 0; }

inline Request request(Grains grains) { return {to_bytes(grains), Placement::kExpensive, 1e6}; }

// Notes what it is told.
class RecordingOwner final : public BlockOwner {
 public:
  struct Move {
    BlockId block;
    Bytes from, to, bytes;
  };

  void evict(BlockId id) override { evictions.push_back(id); }
  void relocate(BlockId id, Bytes from, Bytes to, Bytes bytes) override {
    moves.push_back({id, from, to, bytes});
  }

  std::vector<BlockId> evictions;
  std::vector<Move> moves;
};

}  // namespace coop::testing
