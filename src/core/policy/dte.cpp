#include "core/policy/one_by_one_policy.hpp"
#include "core/policy/registry.hpp"

namespace coop {
namespace {

// Dynamic Tensor Evicting (MegTaiChi, Hu et al., ICS 2022): as DTR, but free space beside a block
// counts as part of what its eviction wins.
struct CostOverStalenessAndSpaceWon {
  static constexpr bool kWantsFreeBeside = true;
  float operator()(const Candidate& block) const {
    return block.cost / (block.staleness * (block.grains + block.free_grains));
  }
};

}  // namespace

std::unique_ptr<Policy> make_dte(const PolicyTraits& traits, const PolicyOptions& /*options*/) {
  return std::make_unique<OneByOnePolicy<CostOverStalenessAndSpaceWon>>(traits);
}

}  // namespace coop
