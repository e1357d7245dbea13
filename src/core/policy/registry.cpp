#include "core/policy/registry.hpp"

#include <array>
#include <string>

#include "core/base/errors.hpp"

namespace coop {
namespace {

struct Entry {
  PolicyTraits traits;
  std::unique_ptr<Policy> (*make)(const PolicyTraits&, const PolicyOptions&) = nullptr;
};

constexpr std::array kEntries{
#define COOP_POLICY(maker, name, fit, cheap_apart, long_lived_left, surroundings, summary)   \
  Entry{{name, summary, Fit::fit, cheap_apart, long_lived_left, Surroundings::surroundings}, \
        make_##maker},
#include "core/policy/policies.inc"
#undef COOP_POLICY
};

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyOptions& options) {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (entry.traits.name == name) return entry.make(entry.traits, options);
    names += (names.empty() ? "" : ", ") + std::string(entry.traits.name);
  }
  throw InvalidArgument("there is no policy '" + std::string(name) + "'; there are " + names);
}

std::vector<PolicyTraits> known_policies() {
  std::vector<PolicyTraits> traits;
  traits.reserve(kEntries.size());
  for (const Entry& entry : kEntries) traits.push_back(entry.traits);
  return traits;
}

}  // namespace coop
