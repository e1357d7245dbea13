#include "core/policy/one_by_one_policy.hpp"
#include "core/policy/registry.hpp"

namespace coop {
namespace {

struct Smallness {
  float operator()(const Candidate& block) const { return 1.0F / block.grains; }
};

}  // namespace

std::unique_ptr<Policy> make_largest(const PolicyTraits& traits, const PolicyOptions& /*options*/) {
  return std::make_unique<OneByOnePolicy<Smallness>>(traits);
}

}  // namespace coop
