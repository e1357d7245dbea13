#include "core/plan/step_facts.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/plan/early.hpp"
#include "core/plan/step_lineage.hpp"

namespace coop {
namespace {

using Call = StepFacts::Call;
using Version = StepFacts::Version;

void number_versions(const StepRecord& step, StepFacts& facts) {
  Version next = 0;
  facts.calls = static_cast<Call>(step.calls.size());
  facts.first_version.reserve(step.calls.size() + 1);
  for (std::size_t call = 0; call < step.calls.size(); ++call) {
    facts.first_version.push_back(next);
    next += static_cast<Version>(step.writes_of(call).size() + step.made_by(call).size());
  }
  facts.first_version.push_back(next);
  facts.versions.resize(next);
}

// Follows the record from event to event.
class FactsBuilder {
 public:
  FactsBuilder(const StepRecord& step, Bytes small_limit, std::uint32_t most_depth,
               StepFacts& facts)
      : step_(step),
        small_limit_(small_limit),
        most_depth_(most_depth),
        facts_(facts),
        lineage_(facts) {
    current_.assign(step.storages.size(), StepFacts::kNone);
    written_in_.assign(step.storages.size(), StepFacts::kNone);
    seen_as_input_.assign(facts.versions.size(), StepFacts::kNone);
  }

  void build() {
    find_what_stays();
    for (std::uint32_t storage = 0; storage < step_.storages.size(); ++storage) {
      if (step_.storages[storage].is_there) arrive(storage, true);
    }
    for (const StepRecord::Event& event : step_.events) {
      switch (event.kind) {
        case StepRecord::Kind::kSource:
          if (current_[event.subject] != StepFacts::kNone) release(event.subject);
          arrive(event.subject, false);
          break;
        case StepRecord::Kind::kEndLineage:
          ending_.push_back(event.subject);
          break;
        case StepRecord::Kind::kRelease:
          if (current_[event.subject] != StepFacts::kNone) release(event.subject);
          break;
        case StepRecord::Kind::kCall:
          run(event.subject);
          break;
      }
    }
    end();
  }

 private:
  void find_what_stays() {
    stays_.resize(step_.storages.size());
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      stays_[i] = step_.storages[i].is_there;
    }
    for (const StepRecord::Event& event : step_.events) {
      const bool comes_or_goes =
          event.kind == StepRecord::Kind::kSource || event.kind == StepRecord::Kind::kRelease;
      if (comes_or_goes) stays_[event.subject] = false;
    }
    for (const std::uint32_t storage : step_.makes) stays_[storage] = false;
  }

  [[nodiscard]] Bytes occupied(Bytes bytes) const {
    return bytes > small_limit_ ? whole_grains(bytes) : bytes;
  }
  void describe(Version version, std::uint32_t storage) {
    facts_.versions[version].storage = storage;
    facts_.versions[version].bytes = occupied(step_.storages[storage].bytes);
  }

  // --- events ---

  void arrive(std::uint32_t storage, bool is_there_before) {
    const auto version = static_cast<Version>(facts_.versions.size());
    facts_.versions.emplace_back();
    lineage_.add_source();
    seen_as_input_.push_back(StepFacts::kNone);
    describe(version, storage);
    if (is_there_before) facts_.there_before += facts_.versions[version].bytes;
    current_[storage] = version;
    facts_.versions[version].is_there_before = is_there_before;
    facts_.arrives.add(version);
    have_some_arrived_ = true;
  }

  void release(std::uint32_t storage) {
    const Version version = std::exchange(current_[storage], StepFacts::kNone);
    retire(version);
    if (lineage_.is_source(version) && lineage_.has_readers(version)) {
      lineage_.make_orphan(version);
    } else {
      memory_goes(version);
      lineage_.make_keepable(version);
    }
    lineage_.let_go(version);
    let_orphans_go();
  }

  void run(Call call) {
    open_call();
    bool can_run_again = step_.calls[call].is_replayable;
    for (const std::uint32_t storage : step_.reads_of(call)) add_input(call, current_[storage]);
    for (const StepRecord::Write& write : step_.writes_of(call)) {
      if (write.reads_old) add_input(call, current_[write.storage]);
    }
    end_lineages(call);
    protect_from_writes(call);
    for (const StepRecord::Write& write : step_.writes_of(call)) {
      const Version before = current_[write.storage];
      if (before == StepFacts::kNone || !lineage_.is_source(before)) continue;
      if (seen_as_input_[before] == call) can_run_again = false;  // it reads what it destroys
    }
    std::uint32_t depth = 0;
    for (const Version input : inputs_) depth = std::max(depth, lineage_.depth(input));
    if (depth >= most_depth_) can_run_again = false;
    make_outputs(call, can_run_again, depth + 1);
    facts_.cost.push_back(step_.calls[call].cost);
    facts_.total_cost += step_.calls[call].cost;
    facts_.workspace.push_back(occupied(step_.calls[call].workspace));
    if (lineage_.is_needed(call)) {
      for (const Version input : inputs_) {
        lineage_.add_reader(input, call);
        readers_.emplace_back(input, call);
      }
    }
    close_call(call);
    retire_overwritten();
  }

  // The end of the step reads what is alive.
  void end() {
    open_call();
    for (const Version version : current_) {
      if (version == StepFacts::kNone) continue;
      facts_.versions[version].current_until = facts_.calls + 1;
      add_input(facts_.calls, version);
    }
    end_lineages(facts_.calls);
    facts_.cost.push_back(0);
    facts_.workspace.push_back(0);
    close_call(facts_.calls);
    facts_.gone_after.close();
    facts_.readers = Lists<Call>::sorted(facts_.versions.size(), readers_);
    facts_.uses = Lists<Call>::sorted(facts_.versions.size(), uses_);
  }

  void open_call() {
    if (next_call_ > 0) facts_.gone_after.close();
    facts_.arrives.close();
    facts_.gone_before.close();
    have_some_arrived_ = false;
    is_in_call_ = true;
    inputs_.clear();
  }
  void close_call(Call call) {
    for (const Version input : inputs_) {
      facts_.inputs.add(input);
      uses_.emplace_back(input, call);
    }
    next_call_ = call + 1;
    is_in_call_ = false;
    facts_.inputs.close();
    facts_.protects.close();
    facts_.makes.close();
    facts_.changes.close();
    facts_.overwrites.close();
  }

  // --- calls ---

  void add_input(Call call, Version version) {
    if (version == StepFacts::kNone || seen_as_input_[version] == call) return;
    seen_as_input_[version] = call;
    inputs_.push_back(version);
  }

  // Of what was said to be made no more since the call before, and is still there.
  void end_lineages(Call call) {
    for (const std::uint32_t storage : ending_) {
      const Version version = current_[storage];
      if (version != StepFacts::kNone && !lineage_.is_source(version)) fix(version, call);
    }
    ending_.clear();
    let_orphans_go();
  }

  // Protecting what is made from one Source may make a Source of what another write overwrites; then what is
  // made from that has to be protected too. Each write is looked at again until then, and once after.
  void protect_from_writes(Call call) {
    todo_.clear();
    for (const StepRecord::Write& write : step_.writes_of(call)) {
      if (current_[write.storage] != StepFacts::kNone) todo_.push_back(current_[write.storage]);
    }
    for (bool is_settled = false; !is_settled;) {
      is_settled = true;
      std::size_t left = 0;
      for (const Version before : todo_) {
        if (!lineage_.is_source(before)) {
          todo_[left++] = before;
          continue;
        }
        if (protect_descendants(before, call)) is_settled = false;
      }
      todo_.resize(left);
    }
  }

  // False: there is nothing to protect.
  bool protect_descendants(Version source, Call call) {
    const std::span<const Version> found = lineage_.nearest_current(source);
    for (const Version version : found) fix(version, call);
    let_orphans_go();
    return !found.empty();
  }

  // It has to be there when the call begins, and is a Source from then on.
  void fix(Version version, Call call) {
    facts_.protects.add(version);
    uses_.emplace_back(version, call);
    facts_.versions[version].fixed_from = call;
    lineage_.cut(version);
  }

  void make_outputs(Call call, bool can_run_again, std::uint32_t depth) {
    Version version = facts_.first_version[call];
    const auto adopt = [&](std::uint32_t storage) {
      describe(version, storage);
      const bool is_worth_it = step_.storages[storage].bytes > small_limit_ &&
                               !step_.storages[storage].is_source && !stays_[storage];
      if (!can_run_again || !is_worth_it) return;
      facts_.versions[version].producer = call;
      lineage_.adopt(call, version, depth);
    };
    written_.clear();
    for (const StepRecord::Write& write : step_.writes_of(call)) {
      const Version before = current_[write.storage];
      if (before != StepFacts::kNone && written_in_[write.storage] != call) {
        adopt(write.storage);
        written_in_[write.storage] = call;
        written_.emplace_back(write.storage, version);
        (write.reads_old ? facts_.changes : facts_.overwrites).add({before, version});
      }
      ++version;
    }
    for (const std::uint32_t storage : step_.made_by(call)) {
      if (current_[storage] != StepFacts::kNone) release(storage);
      adopt(storage);
      current_[storage] = version;
      facts_.makes.add(version++);
    }
  }

  void retire_overwritten() {
    for (const auto& [storage, after] : written_) {
      const Version before = std::exchange(current_[storage], after);
      retire(before);
      lineage_.let_go(before);
    }
    let_orphans_go();
  }

  // --- letting go ---

  void retire(Version version) {
    lineage_.retire(version);
    facts_.versions[version].current_until = next_call_;
  }
  void memory_goes(Version version) {
    (have_some_arrived_ ? facts_.gone_before : facts_.gone_after).add(version);
  }
  void let_orphans_go() {
    for (const Version version : lineage_.gone()) {
      StepFacts::VersionFacts& facts = facts_.versions[version];
      if (!lineage_.is_source(version)) {
        const Call next = is_in_call_ ? next_call_ + 1 : next_call_;
        if (facts.current_until == next) continue;  // at once
        facts.kept_until = next;
      }
      memory_goes(version);
    }
    lineage_.gone().clear();
  }

  const StepRecord& step_;
  Bytes small_limit_;
  std::uint32_t most_depth_;
  StepFacts& facts_;
  std::vector<Version> current_;  // by storage
  std::vector<bool> stays_;       // by storage: there before, and all through the step
  StepLineage lineage_;
  std::vector<Call> seen_as_input_;  // by version: the last call that reads it
  std::vector<Call> written_in_;     // by storage: the last call that writes it
  std::vector<std::pair<Version, Call>> readers_;
  std::vector<std::pair<Version, Call>> uses_;
  Call next_call_ = 0;
  bool is_in_call_ = false;
  bool have_some_arrived_ = false;     // since the last call
  std::vector<std::uint32_t> ending_;  // storages whose lineage ends, since the last call
  // Of the running call; kept for their memory.
  std::vector<Version> inputs_;
  std::vector<Version> todo_;
  std::vector<std::pair<std::uint32_t, Version>> written_;
};

}  // namespace

StepFacts::StepFacts(const StepRecord& step, Bytes small_limit, std::uint32_t most_depth) {
  number_versions(step, *this);
  FactsBuilder(step, small_limit, most_depth, *this).build();
  early = find_early(*this);
}

}  // namespace coop
