#pragma once

// What is alive in a step because something may have to be made from it; the same as the engine's Graph keeps
// (core/lineage/graph.hpp), as numbers. Linear in the record, whatever the step.
//
// A version is alive while it is current or a call reads it that is needed; a call is needed while one of its
// outputs is alive and has not become a Source.

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/step_facts.hpp"

namespace coop {

class StepLineage {
 public:
  using Call = StepFacts::Call;
  using Version = StepFacts::Version;

  // Looks at producers, fixed_from and inputs as far as they are known.
  explicit StepLineage(const StepFacts& facts);

  [[nodiscard]] bool is_source(Version version) const {
    const StepFacts::VersionFacts& facts = facts_.versions[version];
    return facts.producer == StepFacts::kNone || facts.fixed_from != StepFacts::kNone;
  }
  [[nodiscard]] std::uint32_t depth(Version version) const { return versions_[version].depth; }
  [[nodiscard]] bool has_readers(Version version) const { return versions_[version].readers > 0; }
  [[nodiscard]] bool is_needed(Call call) const { return needed_for_[call] > 0; }

  void add_source();  // the next version
  void adopt(Call call, Version output,
             std::uint32_t depth);  // the call made it, and can make it again
  void add_reader(Version version, Call call);

  void retire(Version version) { versions_[version].is_current = false; }
  // A Source that was released, and stays for others.
  void make_orphan(Version version) { versions_[version].is_orphan = true; }
  // What was released, and could stay for others as well.
  void make_keepable(Version version) { versions_[version].is_keepable = !is_source(version); }
  // If nobody needs it.
  void let_go(Version version);
  // It has become a Source.
  void cut(Version version);
  // Of these two, those that nobody needs any more, for the caller to empty.
  std::vector<Version>& gone() { return gone_; }

  // The nearest current versions made from it, directly or through past ones. When these are cut, what was
  // passed through is dead: so over the whole step each is met once.
  [[nodiscard]] std::span<const Version> nearest_current(Version source);

 private:
  struct VersionState {
    bool is_current = true;
    bool is_dead = false;
    bool is_orphan = false;
    bool is_keepable = false;
    std::uint32_t readers = 0;                      // that are needed
    std::uint32_t depth = 0;                        // calls between it and the farthest Source
    std::uint32_t first_reader = StepFacts::kNone;  // in readers_
    std::uint32_t seen_by_walk = 0;
  };
  struct Reader {  // of a version; they form a list
    Call call = 0;
    std::uint32_t next = StepFacts::kNone;
  };

  void leave_producer(Version version);
  void let_go_of_doomed();

  const StepFacts& facts_;
  std::vector<VersionState> versions_;
  std::vector<std::uint32_t> needed_for_;  // by call: outputs
  std::vector<Reader> readers_;
  std::vector<Version> gone_;
  std::uint32_t walks_ = 0;
  std::vector<Version> found_;
  std::vector<Version> through_;
  std::vector<Version> doomed_;
};

}  // namespace coop
