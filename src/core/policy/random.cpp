#include <bit>
#include <random>

#include "core/policy/registry.hpp"

namespace coop {
namespace {

// Any evictable block, each as likely as the next. For tests: whatever it evicts, results must be
// right.
class RandomPolicy final : public Policy {
 public:
  RandomPolicy(const PolicyTraits& traits, std::uint64_t seed) : Policy(traits), lots_(seed) {}

  void choose_victims(const Pool& pool, const Request& /*request*/,
                      std::vector<BlockId>& victims) override {
    std::uint64_t candidates = 0;
    for (const Chunk* chunk : pool.order().chunks()) {
      candidates += static_cast<std::uint64_t>(std::popcount(chunk->evictable()));
    }
    if (candidates == 0) return;
    // Not uniform_int_distribution, whose numbers differ between standard libraries.
    std::uint64_t lot = lots_() % candidates;
    for (const Chunk* chunk : pool.order().chunks()) {
      for (const int slot : SlotsOf(chunk->evictable())) {
        if (lot-- == 0) {
          victims.push_back(pool.id_of(chunk->block_at(slot)));
          return;
        }
      }
    }
  }

 private:
  std::mt19937_64 lots_;
};

}  // namespace

std::unique_ptr<Policy> make_random(const PolicyTraits& traits, const PolicyOptions& options) {
  return std::make_unique<RandomPolicy>(traits, options.seed);
}

}  // namespace coop
