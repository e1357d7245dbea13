#pragma once

// Declares make_<policy> for every line of policies.inc; each is defined in the file of that name.

#include <memory>

#include "core/policy/policy.hpp"

namespace coop {

#define COOP_POLICY(maker, name, fit, cheap_apart, long_lived_left, surroundings, moves, ahead, \
                    summary)                                                                    \
  std::unique_ptr<Policy> make_##maker(const PolicyTraits& traits, const PolicyOptions& options);
#include "core/policy/policies.inc"
#undef COOP_POLICY

}  // namespace coop
