#pragma once

// What a set of drops costs, and how much memory is held at every moment of the step: exactly, but without
// addresses.
//
// Note [Moments]
//
// The step is run through in thought. Memory only matters while a call runs, the program's or one that runs
// again; each of these is a *moment*. What a call needs and is not there is made again before it, by calls in
// their original order, and each of these that needs something missing needs others before it.
//
//     call      0 | 1 | 2 | 3        4        | ...      calls of the program
//     runs      0 | 1 | 2 | 3 | 1'   2'   4   | ...      1 and 2 run again for call 4
//     moment    0   1   2   3   4    5    6
//
//   - A current version that is made again stays, unless a drop says otherwise. A past one is there only until
//     the last call that was to run again has read it.
//   - What else can be made from past versions while they are there for a moment, is current, is missing and
//     will be needed comes *along*: otherwise these would have to be made once for each (the gates of an LSTM).
//   - What had better come back early does (early.hpp), unless it is dropped anew at that very call.
//   - A drop takes effect at the last touch within its call, so before the call's own moment where only
//     calls that run again read the version.
//
// Note [Gaps]
//
// A gap is the time between two touches of a version. In it the version is dropped, or may be: then the gap's
// moments need less memory, and the version has to be made again at the gap's end. What that would cost is
// estimated by walking from the version to what is there at the end of the gap as things are; the walk is given
// up after kMostSteps, or when it costs more than a limit.
//
// An evaluation takes time linear in the calls that run and what they read, and stops when they are too many.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/drops.hpp"
#include "core/plan/step_facts.hpp"

namespace coop {

using Moment = std::uint32_t;

struct Gap {
  StepFacts::Version version = 0;
  StepFacts::Call from = 0;  // the call of the last touch before it: where a drop would be
  StepFacts::Call until = 0;
  Moment after = 0;  // the moments in between count
  Moment before = 0;
  bool is_dropped = false;
  bool is_last = false;  // nobody touches it any more: nothing to make again
  // Of making it again, unless it is dropped or the last.
  double cost = 0;           // of all calls that would run
  double extra_cost = 0;     // without those for what will have to be made again anyway
  bool is_too_dear = false;  // beyond the limit: the costs are not known
  StepFacts::Version parent =
      StepFacts::kNone;  // a past version that it, and others, would be made from
  // A smaller past version: were that kept, it could be made again for so much.
  StepFacts::Version smaller = StepFacts::kNone;
  double cost_if_kept = 0;
};

// Memory that is held under one address from the beginning of moment `from` to the end of moment `until`.
struct PlannedBlock {
  Bytes bytes = 0;
  Moment from = 0;
  Moment until = 0;
  StepFacts::Call call = 0;  // the program's call before or in which it is allocated
  StepFacts::Call by = 0;    // the call that allocates it; none: it comes from outside
  StepFacts::Version version = StepFacts::kNone;  // the first in it; none: a workspace
};

struct ComesAlong {
  StepFacts::Call call = 0;
  StepFacts::Version version = 0;
};

class StepEvaluation {
 public:
  explicit StepEvaluation(const StepFacts& facts);

  enum class Detail : std::uint8_t {
    kMemory,  // overhead and memory
    kGaps,    // the gaps besides, with costs
    kBlocks,  // the gaps without costs, blocks, and what comes along
  };
  // False if so much would run again that there is no point in going on.
  [[nodiscard]] bool run(const Drops& drops, Detail detail);

  // Bytes that are held besides, by call. Of the size of the calls and one.
  std::vector<Bytes> besides;
  // Nanoseconds per byte: gaps whose versions cost more are too dear.
  double price_limit = std::numeric_limits<double>::infinity();

  // --- results ---
  [[nodiscard]] double overhead() const { return overhead_; }
  [[nodiscard]] Bytes most() const { return most_; }
  [[nodiscard]] const std::vector<Bytes>& memory() const { return memory_; }          // by moment
  [[nodiscard]] const std::vector<StepFacts::Call>& calls() const { return calls_; }  // by moment
  [[nodiscard]] const std::vector<Gap>& gaps() const { return gaps_; }
  // The first call at whose beginning it is neither current nor kept.
  [[nodiscard]] StepFacts::Call held_until(StepFacts::Version version) const {
    const StepFacts::VersionFacts& facts = facts_.versions[version];
    return drops_->keeps(version) ? facts.kept_until : facts.current_until;
  }
  // What all that ran again for a call cost.
  [[nodiscard]] double ran_again_for(StepFacts::Call call) const {
    return state_of_call_[call].cost;
  }
  [[nodiscard]] const std::vector<PlannedBlock>& blocks() const { return blocks_; }
  [[nodiscard]] const std::vector<ComesAlong>& along() const { return along_; }

 private:
  using Call = StepFacts::Call;
  using Version = StepFacts::Version;

  struct State {  // of a version
    bool is_there = false;
    std::uint32_t wanted = 0;           // by calls that are to run again
    Call needed_by = StepFacts::kNone;  // the last call of the program that needed it
    Call touched_in = 0;
    Moment touched_at = 0;
    std::uint32_t block = 0;
  };
  struct StateOfCall {
    Call planned_for =
        StepFacts::kNone;             // the last call of the program that it is to run again for
    Call ran_for = StepFacts::kNone;  // the last that it did
    std::uint32_t seen_by_walk = 0;
    double cost = 0;  // of what ran again for it
  };

  // Current, or kept.
  [[nodiscard]] bool is_held(Version version, Call call) const {
    return held_until(version) > call;
  }
  // Of what is said to be gone when `next` is the next call: some of it is kept, or was not.
  [[nodiscard]] bool is_gone(Version version, Call next) const {
    return !facts_.is_keepable(version) || held_until(version) == next;
  }

  void begin();
  void let_sources_arrive(Call call);
  [[nodiscard]] bool bring_back_inputs(Call call);
  void run_call(Call call);

  [[nodiscard]] bool plan_missing(Call call);
  [[nodiscard]] bool comes_early(Version version, Call call) const {
    return !state_[version].is_there && !drops_->has(version, call);
  }
  void bring_along(Call call);
  void offer_readers(Version past, Call call);
  [[nodiscard]] bool is_wanted_along(Version version, Call producer, Call call) const;
  void run_again(Call again, Call call);
  void deliver(Version version, Call call, Moment moment);
  void done_with(Version version, Call call);

  Moment add_moment(Call call, Bytes workspace);
  void touch(Version version, Call call, Moment moment);
  void come_back(Version version, Call call, Moment moment);
  void drop_if_planned(Version version, Call call);
  void note_last_gap(Version version, Call call, Moment end);
  void end_life(Version version, Call call, Moment end);
  void leave(Version version);
  void estimate(Gap& gap);
  void find_smaller(Gap& gap) const;

  void open_block(Version version, Moment moment, Call call, Call by);
  void close_block(Version version);
  void add_workspace(Call by, Call call, Moment moment);

  const StepFacts& facts_;
  const Drops* drops_ = nullptr;
  Detail detail_ = Detail::kMemory;
  std::vector<State> state_;
  std::vector<StateOfCall> state_of_call_;
  std::vector<Call> agenda_;
  std::vector<Version> stack_;
  std::uint32_t walks_ = 0;
  std::size_t runs_again_ = 0;
  Bytes held_ = 0;

  double overhead_ = 0;
  Bytes most_ = 0;
  std::vector<Bytes> memory_;
  std::vector<Call> calls_;
  std::vector<Gap> gaps_;
  std::vector<PlannedBlock> blocks_;
  std::vector<ComesAlong> along_;
};

}  // namespace coop
