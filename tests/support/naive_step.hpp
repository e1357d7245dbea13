#pragma once

// A step carried out in the plainest way: everything is looked up and gone through again whenever it is needed.
// The reference for StepFacts and StepEvaluation, which keep count instead. See core/plan/step_facts.hpp and
// core/plan/step_evaluation.hpp for the rules.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/plan/byte_range.hpp"
#include "core/plan/step_plan.hpp"
#include "core/plan/step_record.hpp"

namespace coop::testing {

class NaiveStep {
 public:
  using Version = std::size_t;  // in the order in which they come to be
  using Call = std::size_t;
  // A version as the planner numbers it: of a call, and which of its outputs.
  using Name = std::pair<Call, std::size_t>;

  struct Decisions {
    std::set<std::pair<Name, Call>> drops;
    std::set<Name> kept;
    std::map<Call, std::vector<Name>> along;
    std::map<Call, std::vector<Name>> early;
  };

  NaiveStep(const StepRecord& step, Bytes small_limit, Decisions decisions)
      : step_(step), small_limit_(small_limit), decisions_(std::move(decisions)) {}

  // Large blocks go to their planned places; it is checked that these are free, and below the budget.
  void use_places(const StepPlan& plan, std::span<const ByteRange> held, Bytes budget) {
    plan_ = &plan;
    held_.assign(held.begin(), held.end());
    budget_ = budget;
  }

  void run() {
    for (std::size_t storage = 0; storage < step_.storages.size(); ++storage) {
      if (step_.storages[storage].is_there) current_[storage] = arrive(storage);
    }
    measure(0);
    for (const StepRecord::Event& event : step_.events) {
      if (event.kind == StepRecord::Kind::kCall) run_call(event.subject);
      if (event.kind == StepRecord::Kind::kSource) {
        current_[event.subject] = arrive(event.subject);
        versions_.back().range =
            next_place(calls_.size(), StepPlan::kOutside, versions_.back().bytes);
      }
      if (event.kind == StepRecord::Kind::kEndLineage) ending_.insert(event.subject);
      if (event.kind == StepRecord::Kind::kRelease) release(event.subject);
      measure(0);
    }
    std::set<Version> rest;
    for (const auto& [storage, version] : current_) rest.insert(version);
    bring_back(rest, step_.calls.size());
  }

  [[nodiscard]] double overhead() const { return overhead_; }
  [[nodiscard]] Bytes peak() const { return peak_; }
  [[nodiscard]] std::size_t runs_again() const { return runs_again_; }

 private:
  struct VersionState {
    Bytes bytes = 0;
    std::size_t storage = 0;
    std::optional<Call> producer;  // none: a Source
    std::optional<Name> name;
    bool is_current = true;
    bool is_kept = false;
    bool is_there = true;
    [[nodiscard]] bool is_held() const { return is_current || is_kept; }
    std::optional<ByteRange> range;
  };
  struct Change {
    Version before = 0;
    Version after = 0;
    bool reads_old = false;
  };
  struct CallState {
    bool can_run_again = false;
    std::set<Version> reads;
    std::vector<Version> makes;
    std::vector<Change> writes;
    [[nodiscard]] std::vector<Version> outputs() const {
      std::vector<Version> all;
      for (const Change& write : writes) all.push_back(write.after);
      all.insert(all.end(), makes.begin(), makes.end());
      return all;
    }
  };

  [[nodiscard]] Bytes occupied(Bytes bytes) const {
    return bytes > small_limit_ ? (bytes + 511) / 512 * 512 : bytes;
  }
  [[nodiscard]] bool stays(std::size_t storage) const {
    if (!step_.storages[storage].is_there) return false;
    return std::none_of(step_.events.begin(), step_.events.end(), [&](const auto& event) {
      return event.kind == StepRecord::Kind::kRelease && event.subject == storage;
    });
  }
  void measure(Bytes besides, std::vector<ByteRange> ranges = {}) {
    Bytes sum = besides;
    ranges.insert(ranges.end(), held_.begin(), held_.end());
    for (const VersionState& version : versions_) {
      if (!version.is_there) continue;
      sum += version.bytes;
      if (version.range) ranges.push_back(*version.range);
    }
    peak_ = std::max(peak_, sum);
    std::sort(ranges.begin(), ranges.end(),
              [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      COOP_CHECK(ranges[i - 1].end <= ranges[i].begin);
    }
  }

  // The next that call `by` allocates, run for `call`.
  std::optional<ByteRange> next_place(Call call, Call by, Bytes bytes) {
    if (plan_ == nullptr || bytes <= small_limit_) return std::nullopt;
    const std::size_t number = allocated_[{call, by}]++;
    COOP_CHECK(number < plan_->places(call, by).size());
    const StepPlan::Place& place = plan_->places(call, by)[number];
    COOP_CHECK(occupied(place.bytes) == bytes && place.offset % 512 == 0);
    COOP_CHECK(place.offset + bytes <= budget_);
    return ByteRange{place.offset, place.offset + bytes};
  }
  static void add(std::optional<ByteRange> range, std::vector<ByteRange>& ranges) {
    if (range) ranges.push_back(*range);
  }

  Version arrive(std::size_t storage) {
    versions_.push_back({.bytes = occupied(step_.storages[storage].bytes), .storage = storage});
    return versions_.size() - 1;
  }

  // What calls have made from it, and could make again.
  [[nodiscard]] std::vector<Version> made_from(Version version) const {
    std::vector<Version> made;
    for (const auto& [call, state] : calls_) {
      if (!state.reads.contains(version)) continue;
      for (const Version output : state.outputs()) {
        if (versions_[output].producer == call) made.push_back(output);
      }
    }
    return made;
  }
  // The nearest current versions made from it.
  void find_descendants(Version version, std::set<Version>& found) const {
    std::set<Version> seen{version};
    std::vector<Version> through{version};
    while (!through.empty()) {
      const Version next = through.back();
      through.pop_back();
      for (const Version made : made_from(next)) {
        if (!seen.insert(made).second) continue;
        if (versions_[made].is_current) {
          found.insert(made);
        } else {
          through.push_back(made);
        }
      }
    }
  }
  // Whether it is current, or something that is is made from it.
  [[nodiscard]] bool is_alive(Version version) const {
    std::set<Version> descendants;
    find_descendants(version, descendants);
    return versions_[version].is_current || !descendants.empty();
  }
  void free_orphans() {
    for (Version version = 0; version < versions_.size(); ++version) {
      VersionState& state = versions_[version];
      if ((state.producer && !state.is_kept) || is_alive(version)) continue;
      state.is_there = false;
      state.is_kept = false;
    }
  }

  void release(std::size_t storage) {
    const Version version = current_.at(storage);
    current_.erase(storage);
    VersionState& state = versions_[version];
    state.is_current = false;
    state.is_kept = state.producer && decisions_.kept.contains(*state.name);
    if (state.producer && !state.is_kept) state.is_there = false;
    free_orphans();
  }

  // What is made from Sources that the call writes, and has to be a Source before it does.
  [[nodiscard]] std::set<Version> endangered_by(Call call, std::set<Version> fixed) const {
    for (bool is_settled = false; !is_settled;) {
      const std::size_t known = fixed.size();
      for (const StepRecord::Write& write : step_.writes_of(call)) {
        const Version before = current_.at(write.storage);
        const bool is_source = !versions_[before].producer || fixed.contains(before);
        if (is_source) find_descendants(before, fixed);
      }
      is_settled = fixed.size() == known;
    }
    return fixed;
  }

  // What is not to be made again from now on.
  std::set<Version> ended() {
    std::set<Version> found;
    for (const std::size_t storage : std::exchange(ending_, {})) {
      if (current_.contains(storage)) found.insert(current_.at(storage));
    }
    return found;
  }

  void run_call(Call call) {
    CallState state;
    for (const std::uint32_t storage : step_.reads_of(call))
      state.reads.insert(current_.at(storage));
    for (const StepRecord::Write& write : step_.writes_of(call)) {
      if (write.reads_old) state.reads.insert(current_.at(write.storage));
    }
    std::set<Version> needed = state.reads;
    const std::set<Version> early = early_of(call);
    for (const Version version : early) {
      if (!decisions_.drops.contains({*versions_[version].name, call})) needed.insert(version);
    }
    const std::set<Version> fixed = endangered_by(call, ended());
    needed.insert(fixed.begin(), fixed.end());
    bring_back(needed, call);
    for (const Version version : fixed) versions_[version].producer.reset();

    state.can_run_again = step_.calls[call].is_replayable;
    for (const StepRecord::Write& write : step_.writes_of(call)) {
      const Version before = current_.at(write.storage);
      if (!versions_[before].producer && state.reads.contains(before)) state.can_run_again = false;
    }
    std::size_t output = 0;
    const auto make = [&](std::size_t storage) {
      const Version version = arrive(storage);
      VersionState& made = versions_[version];
      made.name = Name{call, output++};
      const StepRecord::Storage& facts = step_.storages[storage];
      const bool is_source = facts.is_source || facts.bytes <= small_limit_ || stays(storage);
      if (state.can_run_again && !is_source) made.producer = call;
      return version;
    };
    for (const StepRecord::Write& write : step_.writes_of(call)) {
      const Version before = current_.at(write.storage);
      const Version after = make(write.storage);
      state.writes.push_back({before, after, write.reads_old});
      if (versions_[before].is_there) {  // the memory goes on to the next
        versions_[after].range = versions_[before].range;
        versions_[before].is_there = false;
      } else {
        versions_[after].range = next_place(call, call, versions_[after].bytes);
      }
    }
    for (const std::uint32_t storage : step_.made_by(call)) {
      state.makes.push_back(make(storage));
      versions_.back().range = next_place(call, call, versions_.back().bytes);
      current_[storage] = state.makes.back();
    }
    const Bytes workspace = occupied(step_.calls[call].workspace);
    std::vector<ByteRange> besides;
    add(next_place(call, call, workspace), besides);
    measure(workspace, besides);
    for (const Change& write : state.writes) {
      versions_[write.before].is_current = false;
      current_[versions_[write.before].storage] = write.after;
    }
    const std::vector<Version> outputs = state.outputs();
    for (const Version version : state.reads) drop_if_planned(version, call);
    for (const Version version : early) drop_if_planned(version, call);
    for (const Version version : outputs) drop_if_planned(version, call);
    calls_[call] = std::move(state);
    free_orphans();
  }

  [[nodiscard]] std::set<Version> early_of(Call call) const {
    std::set<Version> early;
    if (!decisions_.early.contains(call)) return early;
    for (const Name& name : decisions_.early.at(call)) early.insert(named(name));
    return early;
  }
  [[nodiscard]] Version named(const Name& name) const {
    const auto found = std::find_if(versions_.begin(), versions_.end(),
                                    [&](const auto& version) { return version.name == name; });
    COOP_CHECK(found != versions_.end());
    return static_cast<Version>(found - versions_.begin());
  }

  void drop_if_planned(Version version, Call call) {
    VersionState& state = versions_[version];
    if (!state.producer || !state.name || !state.is_held()) return;
    if (decisions_.drops.contains({*state.name, call})) state.is_there = false;
  }

  void plan(Version version, std::set<Call>& agenda) const {
    std::vector<Version> missing{version};
    while (!missing.empty()) {
      const VersionState& next = versions_[missing.back()];
      missing.pop_back();
      if (next.is_there) continue;
      COOP_CHECK(next.producer.has_value());
      if (!agenda.insert(*next.producer).second) continue;
      const std::set<Version>& reads = calls_.at(*next.producer).reads;
      missing.insert(missing.end(), reads.begin(), reads.end());
    }
  }

  void bring_back(const std::set<Version>& needed, Call call) {
    std::set<Call> agenda;
    for (const Version version : needed) plan(version, agenda);
    plan_along(call, needed, agenda);
    while (!agenda.empty()) {
      const Call again = *agenda.begin();
      agenda.erase(agenda.begin());
      run_again(again, call, needed, agenda);
    }
  }

  // Nothing comes along that needs more than itself, but for what comes early.
  void plan_along(Call call, const std::set<Version>& needed, std::set<Call>& agenda) {
    if (!decisions_.along.contains(call)) return;
    COOP_CHECK(!agenda.empty());
    for (const Name& name : decisions_.along.at(call)) {
      const Version along = named(name);
      if (needed.contains(along)) continue;
      const VersionState& version = versions_[along];
      COOP_CHECK(version.is_current && !version.is_there && version.producer.has_value());
      COOP_CHECK(!agenda.contains(*version.producer));
      agenda.insert(*version.producer);
      for (const Version input : calls_.at(*version.producer).reads) {
        COOP_CHECK(versions_[input].is_there || agenda.contains(*versions_[input].producer));
      }
    }
  }

  void run_again(Call again, Call call, const std::set<Version>& needed,
                 const std::set<Call>& left) {
    const CallState& state = calls_.at(again);
    COOP_CHECK(state.can_run_again);
    for (const Version input : state.reads) COOP_CHECK(versions_[input].is_there);
    overhead_ += step_.calls[again].cost;
    ++runs_again_;
    Bytes besides = occupied(step_.calls[again].workspace);
    const std::vector<Version> outputs = state.outputs();
    std::set<Version> was_there;
    for (Version version = 0; version < versions_.size(); ++version) {
      if (versions_[version].is_there) was_there.insert(version);
    }
    std::vector<ByteRange> ranges;
    const auto put = [&](Version output, std::optional<ByteRange> range) {
      if (was_there.contains(output)) {  // made twice
        besides += versions_[output].bytes;
        add(range, ranges);
      } else {
        versions_[output].is_there = true;
        versions_[output].range = range;
      }
    };
    for (const Change& write : state.writes) {
      if (write.reads_old) {
        versions_[write.before].is_there = false;
        put(write.after, versions_[write.before].range);
      } else {
        put(write.after, next_place(call, again, versions_[write.after].bytes));
      }
    }
    for (const Version made : state.makes) {
      put(made, next_place(call, again, versions_[made].bytes));
    }
    add(next_place(call, again, occupied(step_.calls[again].workspace)), ranges);
    measure(besides, ranges);
    std::set<Version> touched = state.reads;
    for (const Version output :
         outputs) {  // what the program has, and is made twice, is not touched
      const bool is_made_twice = versions_[output].is_held() && was_there.contains(output);
      if (!is_made_twice) touched.insert(output);
    }
    for (const Version version : touched) {
      const bool is_wanted = std::any_of(left.begin(), left.end(), [&](Call other) {
        return calls_.at(other).reads.contains(version);
      });
      if (is_wanted || needed.contains(version)) continue;
      if (versions_[version].is_held()) {
        drop_if_planned(version, call);
      } else if (versions_[version].producer || !was_there.contains(version)) {
        versions_[version].is_there = false;  // but what was there and cannot be made stays
      }
    }
  }

  const StepRecord& step_;
  Bytes small_limit_;
  Decisions decisions_;
  const StepPlan* plan_ = nullptr;
  std::vector<ByteRange> held_;
  Bytes budget_ = 0;
  std::map<std::pair<Call, Call>, std::size_t> allocated_;
  std::vector<VersionState> versions_;
  std::map<std::size_t, Version> current_;  // by storage
  std::set<std::size_t> ending_;            // storages whose lineage ends before the next call
  std::map<Call, CallState> calls_;
  double overhead_ = 0;
  Bytes peak_ = 0;
  std::size_t runs_again_ = 0;
};

}  // namespace coop::testing
