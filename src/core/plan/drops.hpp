#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/plan/step_facts.hpp"

namespace coop {

// A version is dropped after it was last touched within a call: read, made, or read by what runs again for the
// call. A drop that finds nothing there does nothing.
struct Drop {
  StepFacts::Version version = 0;
  StepFacts::Call after = 0;
};

// And what is kept when it is released (Note [Kept versions]).
class Drops {
 public:
  explicit Drops(std::size_t versions) : after_(versions), is_kept_(versions) {}

  [[nodiscard]] bool has(StepFacts::Version version, StepFacts::Call after) const {
    const std::vector<StepFacts::Call>& calls = after_[version];
    return !calls.empty() && std::binary_search(calls.begin(), calls.end(), after);
  }
  void add(const Drop& drop) {
    std::vector<StepFacts::Call>& calls = after_[drop.version];
    calls.insert(std::upper_bound(calls.begin(), calls.end(), drop.after), drop.after);
  }
  void remove(const Drop& drop) {
    std::vector<StepFacts::Call>& calls = after_[drop.version];
    calls.erase(std::lower_bound(calls.begin(), calls.end(), drop.after));
  }
  [[nodiscard]] bool has_some(StepFacts::Version version) const { return !after_[version].empty(); }
  void remove_all(StepFacts::Version version) { after_[version].clear(); }

  [[nodiscard]] bool keeps(StepFacts::Version version) const { return is_kept_[version]; }
  [[nodiscard]] bool keeps_some() const {
    return std::find(is_kept_.begin(), is_kept_.end(), true) != is_kept_.end();
  }
  void set_kept(StepFacts::Version version, bool is_kept) { is_kept_[version] = is_kept; }

 private:
  std::vector<std::vector<StepFacts::Call>> after_;  // by version, in order
  std::vector<bool> is_kept_;                        // by version
};

}  // namespace coop
