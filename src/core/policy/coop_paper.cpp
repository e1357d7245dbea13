#include "core/policy/registry.hpp"
#include "core/policy/window_policy.hpp"

namespace coop {
namespace {

// c / s. Size needs no term: the window weighs it.
struct CostOverStaleness {
  float operator()(const Candidate& block) const { return block.cost / block.staleness; }
};

}  // namespace

std::unique_ptr<Policy> make_coop_paper(const PolicyTraits& traits,
                                        const PolicyOptions& /*options*/) {
  return std::make_unique<WindowPolicy<CostOverStaleness>>(traits);
}

}  // namespace coop
