#include "core/policy/registry.hpp"

#include <array>
#include <span>
#include <string>

#include "core/base/errors.hpp"
#include "core/base/words.hpp"

namespace coop {
namespace {

struct Entry {
  PolicyTraits traits;
  std::unique_ptr<Policy> (*make)(const PolicyTraits&, const PolicyOptions&) = nullptr;
};

#define COOP_POLICY(maker, name, fit, cheap_apart, long_lived_left, surroundings, moves, ahead,    \
                    summary)                                                                       \
  Entry{{name, summary, Fit::fit, cheap_apart, long_lived_left, Surroundings::surroundings, moves, \
         ahead},                                                                                   \
        make_##maker},
constexpr std::array kPolicies{
#include "core/policy/policies.inc"
};
constexpr std::array kAblations{
#include "core/policy/ablations.inc"
};
#undef COOP_POLICY

std::vector<PolicyTraits> traits_of(std::span<const Entry> entries) {
  std::vector<PolicyTraits> traits;
  traits.reserve(entries.size());
  for (const Entry& entry : entries) traits.push_back(entry.traits);
  return traits;
}

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyOptions& options) {
  std::vector<std::string_view> names;
  for (const std::span<const Entry> entries : {std::span<const Entry>(kPolicies), {kAblations}}) {
    for (const Entry& entry : entries) {
      if (entry.traits.name == name) return entry.make(entry.traits, options);
      names.push_back(entry.traits.name);
    }
  }
  throw InvalidArgument("there is no policy '" + std::string(name) + "'; " +
                        what_was_meant(name, names));
}

std::vector<PolicyTraits> known_policies() { return traits_of(kPolicies); }

std::vector<PolicyTraits> known_ablations() { return traits_of(kAblations); }

}  // namespace coop
