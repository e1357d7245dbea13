#pragma once

// Makes Values resident by running Calls again.
//
// Note [Replay]
//
// 1. Close over what is missing, with an explicit stack: the Calls that made it, and those that made
//    what they read, back to what is resident.
// 2. Run them in the order in which they were recorded. That order is always right: a Call comes after
//    all that it reads was made, and before whoever changed what it reads.
// 3. Pinned are the inputs of the Call that runs. Targets that are there stay, but may be moved aside until
//    all of them are. What was brought back and will still be read is *wanted*: it may be evicted, but
//    last, and what is read soonest last of all.
// 4. If something wanted had to go, its Call is planned again when its reader comes up: it was recorded
//    earlier, so it comes first. Each Call may run only so often; beyond that it is out of memory.
// 5. A past Value lives in scratch, a block of its own, until its last planned reader has run. Whoever
//    changes a Value where it is comes last of its readers, and gets that scratch.
// 6. A Call that finds no room beside its inputs is tried once more, after those were moved aside. Where
//    Calls run in circles, what is free is gathered before each: what is pinned while it runs would else part
//    it into pieces that are of no use.
//
// The lock is not held while a Call runs; only one thread is that far at a time.
//
// Whatever throws: scratch is freed, pins are given back, what was attached stays attached.

#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"

namespace coop {

class Replay {
 public:
  // Targets are added to `pins` once for each time they are named.
  Replay(Engine& engine, std::span<const ValueId> targets, std::vector<BlockId>& pins);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay();

  void run();
  // Nanoseconds that it would take.
  [[nodiscard]] static double cost_of(Engine& engine, std::span<const ValueId> targets);

 private:
  using Planned = std::pair<std::uint64_t, CallId>;  // by sequence
  struct Later {
    bool operator()(const Planned& a, const Planned& b) const { return a.first > b.first; }
  };

  struct Held;

  void hold(ValueId id);
  void keep(const Value& target);
  void run_plan();
  void bring_back_one_by_one();
  void abandon_plan() noexcept;
  void plan(ValueId missing);
  void bring_along();
  void plan_along(ValueId id);
  [[nodiscard]] std::vector<ValueId> made_from_past_outputs(CallId call) const;
  void unplan(CallId call_id) noexcept;
  [[nodiscard]] std::uint64_t next_reader(const Value& value) const;
  [[nodiscard]] bool is_needed(const Call& call) const;
  [[nodiscard]] bool plan_missing_inputs(CallId call_id);
  void expect_progress(CallId call_id);
  [[noreturn]] void give_up(const Call& call, const std::string& why);
  void run_call(CallId call_id);
  void try_call(CallId call_id);
  [[nodiscard]] bool changes_inputs(const Call& call) const;
  void make_room(const Call& call, Bytes bytes);
  void run_without_lock(Token call, std::span<const BlockId> inputs, std::span<BlockId> outputs);
  BlockId claim_for_mutation(ValueId id, std::vector<BlockId>& owned) noexcept;
  void deliver(CallId call_id, std::span<const BlockId> outputs);
  void drop_scratch(ValueId id) noexcept;

  Engine& engine_;
  Graph& graph_;
  std::span<const ValueId> targets_;
  std::vector<BlockId>& pins_;
  std::uint64_t number_;
  std::priority_queue<Planned, std::vector<Planned>, Later> agenda_;
  // Whose `wanted` or `is_target` this replay has set. Held: while the world runs a Call, other threads
  // may let go of anything.
  std::vector<ValueId> held_;
  std::vector<CallId> planned_;     // so far
  bool has_along_ = false;          // more than the targets need
  std::vector<ValueId> done_with_;  // by the Call that ran last; the plan may have them go
  std::uint32_t ran_ = 0;
};

}  // namespace coop
