#include "core/plan/step_lineage.hpp"

namespace coop {
namespace {

constexpr std::uint32_t kNone = StepFacts::kNone;

}  // namespace

StepLineage::StepLineage(const StepFacts& facts)
    : facts_(facts), versions_(facts.versions.size()), needed_for_(facts.calls + 1) {}

void StepLineage::add_source() { versions_.emplace_back(); }

void StepLineage::adopt(Call call, Version output, std::uint32_t depth) {
  versions_[output].depth = depth;
  ++needed_for_[call];
}

void StepLineage::add_reader(Version version, Call call) {
  ++versions_[version].readers;
  readers_.push_back({call, versions_[version].first_reader});
  versions_[version].first_reader = static_cast<std::uint32_t>(readers_.size() - 1);
}

void StepLineage::let_go(Version version) {
  doomed_.push_back(version);
  let_go_of_doomed();
}

void StepLineage::cut(Version version) {
  leave_producer(version);
  let_go_of_doomed();
}

void StepLineage::let_go_of_doomed() {
  while (!doomed_.empty()) {
    const Version version = doomed_.back();
    doomed_.pop_back();
    VersionState& state = versions_[version];
    if (state.is_current || state.readers > 0 || state.is_dead) continue;
    state.is_dead = true;
    if (state.is_orphan || state.is_keepable) gone_.push_back(version);
    if (!is_source(version)) leave_producer(version);
  }
}

void StepLineage::leave_producer(Version version) {
  const Call producer = facts_.versions[version].producer;
  if (--needed_for_[producer] > 0) return;
  for (const Version input : facts_.inputs[producer]) {
    --versions_[input].readers;
    doomed_.push_back(input);
  }
}

std::span<const StepFacts::Version> StepLineage::nearest_current(Version source) {
  ++walks_;
  found_.clear();
  through_.assign(1, source);
  while (!through_.empty()) {
    const Version version = through_.back();
    through_.pop_back();
    for (std::uint32_t at = versions_[version].first_reader; at != kNone; at = readers_[at].next) {
      const Call reader = readers_[at].call;
      if (!is_needed(reader)) continue;
      for (const Version made : facts_.outputs(reader)) {
        VersionState& state = versions_[made];
        if (is_source(made) || state.is_dead || state.seen_by_walk == walks_) continue;
        state.seen_by_walk = walks_;
        (state.is_current ? found_ : through_).push_back(made);
      }
    }
  }
  return found_;
}

}  // namespace coop
