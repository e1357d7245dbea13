#include "core/plan/least_memory.hpp"

#include <algorithm>
#include <vector>

namespace coop {
namespace {

using Version = StepFacts::Version;

// The Sources that are in memory.
class Sources {
 public:
  explicit Sources(const StepFacts& facts) : facts_(facts), has_(facts.versions.size()) {}

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] bool has(Version version) const { return has_[version]; }
  void add(Version version) {
    if (!has_[version]) bytes_ += facts_.versions[version].bytes;
    has_[version] = true;
  }
  void add_if_source(Version version) {
    if (facts_.versions[version].producer == StepFacts::kNone) add(version);
  }
  void remove(Version version) {
    if (has_[version]) bytes_ -= facts_.versions[version].bytes;
    has_[version] = false;
  }
  void replace(const StepFacts::Change& change) {
    remove(change.before);
    add_if_source(change.after);
  }

 private:
  const StepFacts& facts_;
  Bytes bytes_ = 0;
  std::vector<bool> has_;
};

}  // namespace

Bytes least_memory(const StepFacts& facts) {
  Sources sources(facts);
  std::vector<StepFacts::Call> needed_by(facts.versions.size(), StepFacts::kNone);
  Bytes most = 0;
  for (StepFacts::Call call = 0; call <= facts.calls; ++call) {
    for (const Version version : facts.arrives[call]) sources.add(version);
    most = std::max(most, sources.bytes());
    for (const Version version : facts.gone_before[call]) sources.remove(version);
    for (const Version version : facts.protects[call]) sources.add(version);

    Bytes needed = sources.bytes() + facts.workspace[call];
    const auto need = [&](Version version) {
      if (needed_by[version] == call || sources.has(version)) return;
      needed_by[version] = call;
      needed += facts.versions[version].bytes;
    };
    for (const Version input : facts.inputs[call]) need(input);
    for (const StepFacts::Change& change : facts.overwrites[call]) need(change.before);
    for (const Version made : facts.makes[call]) need(made);
    most = std::max(most, needed);

    for (const StepFacts::Change& change : facts.changes[call]) sources.replace(change);
    for (const StepFacts::Change& change : facts.overwrites[call]) sources.replace(change);
    for (const Version made : facts.makes[call]) sources.add_if_source(made);
    for (const Version version : facts.gone_after[call]) sources.remove(version);
  }
  return most;
}

}  // namespace coop
