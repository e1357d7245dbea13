#include "core/policy/registry.hpp"
#include "core/policy/window_policy.hpp"

namespace coop {

// The published score. What differs: costs are of what is really missing (Surroundings::kMissing); what a
// window frees for further requests counts; and placement: holes are taken from the ends, which keeps the
// free middle whole, and long-lived blocks have a place of their own (core/pool/pool.hpp).
std::unique_ptr<Policy> make_coop(const PolicyTraits& traits, const PolicyOptions& /*options*/) {
  using Coop = WindowPolicy<CostOverStaleness>;
  return std::make_unique<Coop>(traits, Coop::Excess::kCredited);
}

}  // namespace coop
