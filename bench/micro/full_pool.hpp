#pragma once

// A pool in the state in which a search finds it: full of evictable blocks, with some small holes.

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/evicting_pool.hpp"
#include "core/policy/policy.hpp"
#include "core/pool/pool.hpp"
#include "support/random_cases.hpp"

namespace coop::bench {

// Evicted blocks need no more than to be forgotten.
class ForgetfulOwner final : public BlockOwner {
 public:
  void evict(BlockId /*id*/) override {}
  void relocate(BlockId /*id*/, Bytes /*from*/, Bytes /*to*/, Bytes /*bytes*/) override {}
};

class FullPool {
 public:
  static constexpr double kNow = 1e9;

  // `pieces` blocks and holes. Sizes, costs and last uses are spread evenly over their orders of
  // magnitude (64 KiB to 16 MiB, 1 us to 1 ms, the last second), which no network is: the branches
  // of a search cannot be guessed, and neighbours have nothing in common.
  FullPool(std::size_t pieces, Fit fit, std::uint64_t seed) : random_(seed) {
    std::vector<Bytes> sizes;
    Bytes total = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
      sizes.push_back(static_cast<Bytes>(std::exp2(16 + 8 * random_.unit())));
      total += to_bytes(to_grains(sizes.back()));
    }
    pool_ =
        std::make_unique<Pool>(PoolOptions{.bytes = total, .fit = fit, .small_limit = 0}, backing_);
    std::vector<BlockId> blocks;
    for (const Bytes size : sizes) blocks.push_back(*pool_->allocate(size, Placement::kLongLived));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 8 == 7 && sizes[i] < Bytes{1} << 20U) {
        static_cast<void>(pool_->free(blocks[i]));
      } else {
        pool_->set_evictable(blocks[i], std::exp2(10 + 10 * random_.unit()), kNow * random_.unit());
      }
    }
    mean_bytes_ = total / pieces;
  }

  Pool& pool() { return *pool_; }
  // A request that takes a window of about this many pieces, a little different each time.
  Request request(double pieces) {
    const double spread = 0.8 + 0.4 * random_.unit();
    return {static_cast<Bytes>(static_cast<double>(mean_bytes_) * pieces * spread),
            Placement::kExpensive, kNow};
  }

 private:
  testing::Random random_;
  FakeBacking backing_;
  std::unique_ptr<Pool> pool_;
  Bytes mean_bytes_ = 0;
};

}  // namespace coop::bench
