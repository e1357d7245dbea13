#include "core/plan/early.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace coop {
namespace {

constexpr StepFacts::Call kSoon = 32;
// An operator on long lists of tensors is left alone: outputs times inputs would not be linear any more.
constexpr std::size_t kMostInputs = 64;

}  // namespace

Lists<StepFacts::Version> find_early(const StepFacts& facts) {
  using Call = StepFacts::Call;
  using Version = StepFacts::Version;
  std::vector<std::pair<Call, Version>> early;
  for (Version version = 0; version < facts.first_version.back(); ++version) {
    const Call producer = facts.versions[version].producer;
    if (producer == StepFacts::kNone || facts.inputs[producer].size() > kMostInputs) continue;
    const auto uses = facts.uses[version];
    for (const Version input : facts.inputs[producer]) {
      const bool may_be_missing = facts.versions[input].producer != StepFacts::kNone;
      if (!may_be_missing || facts.uses[input].empty()) continue;
      const Call last = facts.uses[input].back();
      const auto next = std::lower_bound(uses.begin(), uses.end(), last);
      const bool is_needed_soon = next != uses.end() && *next > last && *next - last <= kSoon;
      if (last <= producer || !is_needed_soon || facts.is_current(input, *next)) continue;
      const std::pair<Call, Version> found(last, version);
      if (early.empty() || early.back() != found) early.push_back(found);
    }
  }
  return Lists<Version>::sorted(facts.calls + 1, early);
}

}  // namespace coop
