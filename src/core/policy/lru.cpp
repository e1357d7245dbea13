#include "core/policy/one_by_one_policy.hpp"
#include "core/policy/registry.hpp"

namespace coop {
namespace {

struct Freshness {
  float operator()(const Candidate& block) const { return 1.0F / block.staleness; }
};

}  // namespace

std::unique_ptr<Policy> make_lru(const PolicyTraits& traits, const PolicyOptions& /*options*/) {
  return std::make_unique<OneByOnePolicy<Freshness>>(traits);
}

}  // namespace coop
