#include "core/policy/one_by_one_policy.hpp"
#include "core/policy/registry.hpp"

namespace coop {
namespace {

// Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021): c / (s * size).
struct CostOverStalenessAndSize {
  float operator()(const Candidate& block) const {
    return block.cost / (block.staleness * block.grains);
  }
};

}  // namespace

std::unique_ptr<Policy> make_dtr(const PolicyTraits& traits, const PolicyOptions& /*options*/) {
  return std::make_unique<OneByOnePolicy<CostOverStalenessAndSize>>(traits);
}

}  // namespace coop
