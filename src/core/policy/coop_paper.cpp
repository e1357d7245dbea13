#include "core/policy/registry.hpp"
#include "core/policy/window_policy.hpp"

namespace coop {

std::unique_ptr<Policy> make_coop_paper(const PolicyTraits& traits,
                                        const PolicyOptions& /*options*/) {
  return std::make_unique<WindowPolicy<CostOverStaleness>>(traits);
}

}  // namespace coop
