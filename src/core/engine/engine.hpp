#pragma once

// Runs a program inside a pool: records what it computes, drops what must make room, makes it again
// when it is needed.
//
//     RunningCall call = engine.begin_call(reads, writes);     // contents are there, and pinned
//     ... the world runs the operator; memory for what it makes comes from engine.allocate(bytes) ...
//     engine.end_call(call, result);                           // recorded; may be evicted from here on
//
// What always holds, also when something throws (design notes: docs/lineage.md):
//   1. Every current Value is resident, or the Call that made it can be run again: its inputs are
//      Values of the versions it read, and the same holds for them.
//   2. Before a Source is written, what would be made from its old contents is made resident and becomes
//      a Source itself, or the old contents are copied aside.
//   3. A replay writes to fresh blocks only. Calls are replayed in the order in which they were recorded,
//      so whoever reads a version comes before whoever changes it.
//   4. Pinned: what the running Calls read and make. Nothing else, however long the chain.
//
// Threads. Every function may be called from any thread; one lock guards all of it. It is not held while
// the world runs a Call again: only one thread replays at a time, and whoever is about to write or to
// replay waits for it, while others allocate, free, record and read what is there.

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/cost/density_split.hpp"
#include "core/engine/call_memory.hpp"
#include "core/engine/evicting_pool.hpp"
#include "core/engine/loss.hpp"
#include "core/engine/observer.hpp"
#include "core/engine/patience.hpp"
#include "core/engine/requests.hpp"
#include "core/engine/world.hpp"
#include "core/forecast/forecast.hpp"
#include "core/lineage/evicted_regions.hpp"
#include "core/lineage/graph.hpp"
#include "core/policy/policy.hpp"
#include "core/pool/pool.hpp"

namespace coop {

struct EngineOptions {
  // Bounds on lineage: a Value this many Calls away from a Source becomes one, ...
  std::uint32_t most_depth = 2000;
  // ... and of Calls that only exist to make others' inputs again, no more than this many are kept, and a
  // few for each other Call.
  std::size_t most_hidden_calls = 8192;
  // How often one Call may be run again for a single request before it counts as out of memory.
  std::uint32_t most_runs = 1024;
  // How many times as long as the program itself recomputing may take before it counts as out of memory; 0:
  // as long as it likes.
  double most_slowdown = 100;
  EngineObserver* observer = nullptr;
  WallClock clock = steady_clock_ns;  // for measuring the search
};

// A storage that an operator writes.
struct Write {
  StorageId storage;
  bool reads_old = true;  // false: all of it is overwritten, whatever it was
};

// What an operator made.
struct NewOutput {
  BlockId block;
  Token storage = 0;
  Bytes bytes = 0;
  bool is_source = false;  // cannot be made again even though the Call can
};

struct CallResult {
  Token token = 0;  // the world's record of the Call; forgotten at once if it is of no use
  double cost = 0;  // nanoseconds that it took
  bool is_replayable = false;
  std::span<const NewOutput> outputs;
};

// An operator between begin_call and end_call or abort_call. The storages it uses must not be released
// before that.
struct RunningCall {
  std::vector<Graph::Input> inputs;  // the versions that it reads, which are held
  struct Written {
    StorageId storage;
    ValueId before;   // the version that it overwrites, which is held
    ValueId version;  // the one that it writes
    BlockId aside;    // a copy of `before`, for others that are made from it
    BlockId fresh;    // memory for a storage that was evicted and is overwritten without being read
    bool reads_old = true;
  };
  std::vector<Written> writes;
  std::vector<BlockId> pins;
  std::uint64_t number = 0;     // of its own; 0: it has not begun, or is over
  bool changes_source = false;  // so it will not be recorded
  bool was_recorded = false;    // after end_call: it can be run again
};

struct EngineStats {
  std::uint64_t calls = 0;
  std::uint64_t replays = 0;
  double base_ns = 0;                // cost of Calls run for the first time
  double replay_ns = 0;              // cost of Calls run again
  std::uint32_t deepest_replay = 0;  // Calls in the longest single replay
  std::uint64_t cuts = 0;            // Values made Sources to bound or end a lineage
  std::uint64_t copies_aside = 0;
  std::uint64_t unseen_writes = 0;  // found when it came to eviction: those contents stay
  Bytes held_by_lineage = 0;        // in Sources that no storage has any more
  std::uint64_t plans = 0;          // tried, whether or not one was found and followed
  std::uint64_t planned_calls = 0;  // that came as planned
  std::uint64_t kept = 0;  // Values that were released, and whose memory is theirs nevertheless
};

// Memory for the world.
struct Allocation {
  BlockId block;
  std::byte* address = nullptr;
  Bytes held = 0;                    // by all blocks together
  std::uint64_t making_room_ns = 0;  // of real time, if room had to be made
  bool has_searched = false;         // room had to be made, now or before: the budget binds
};

class Engine final : private BlockOwner, private GraphListener {
 public:
  Engine(Pool& pool, Policy& policy, World& world, const EngineOptions& options = {});

  // Contents that come from outside: a parameter, a batch. The block is from allocate().
  StorageId add_source(Token token, Bytes bytes, BlockId block);
  // The same, and in its place until it is released (keep_in_place), at no moment without.
  StorageId add_source_in_place(Token token, Bytes bytes, BlockId block);
  // Contents that lie elsewhere; `room` of their bytes count here: a block that is neither read nor written.
  StorageId add_foreign_source(Token token, Bytes bytes, Bytes room);

  RunningCall begin_call(std::span<const StorageId> reads, std::span<const Write> writes);
  // The new storages, in the order of result.outputs. If it throws (InvalidArgument, bad_alloc), nothing
  // has changed, and abort_call is to be called.
  std::vector<StorageId> end_call(RunningCall& call, const CallResult& result);
  // The operator failed. What it was to change may have been changed, and counts as written. What was
  // evicted, and would have been overwritten without being read, is what it was.
  void abort_call(RunningCall& call) noexcept;

  // The operator found no memory beside what it reads. Moves that aside, so that there is room for this many
  // bytes in one piece, and it can be begun anew; for one that writes nothing.
  void make_room(RunningCall& call, Bytes bytes);

  // A pinned block, for an output or as a workspace; evicts where it must. Whoever allocates it frees
  // it, or hands it over with end_call or from World::replay. `cost`: of what it is for, if known.
  BlockId allocate(Bytes bytes, double cost = 0) { return allocate_memory(bytes, cost).block; }
  // The same, and all that the world wants to know of it. `lives_long`: it stays where it is until the end, and lies
  // with what lives long.
  Allocation allocate_memory(Bytes bytes, double cost = 0, bool lives_long = false);
  void free(BlockId block) noexcept;

  // The program has no more use for it.
  void release(StorageId storage) noexcept;
  // Resident, and a Source: what it was made from is no longer needed for it. For contents that are going
  // to stay, like a gradient that has been accumulated.
  void end_lineage(StorageId storage);
  // The same, and in its place until it is released.
  void keep_in_place(StorageId storage);
  // The storage is the world's alone again, and released; its block, which stays where it is, is pinned, as if it
  // had just been allocated. None, and nothing has changed, if others are made from it, it is not resident, or
  // somebody is told of requests, who has no word for it.
  std::optional<BlockId> hand_back(StorageId storage);
  // Resident, in its place, and a Source from now on, until it is released. For contents that are seen from
  // outside, and may be written there.
  void export_storage(StorageId storage);
  // Resident at this moment.
  void make_resident(StorageId storage);
  // Evicts everything that may be evicted.
  void evict_all();
  // Moves everything that may be moved to the left end.
  void compact();
  // From now on what lies ahead and what things would cost is kept track of, as if something had been evicted.
  void act_as_bound();

  // From now on these are told of what is done and of what is asked for; null: nobody is. Whoever is told of
  // requests hears first of the storages and blocks that there are, as if they had just come about.
  void observe(EngineObserver* events, RequestObserver* requests);
  // One more that is told of what is done.
  void watch(EngineObserver* events);

  [[nodiscard]] bool is_resident(StorageId id) const;
  // Where a block is; good while it is pinned.
  [[nodiscard]] std::byte* address(BlockId block) const;
  [[nodiscard]] bool has_block(BlockId block) const;
  [[nodiscard]] Bytes held_bytes() const;
  [[nodiscard]] EngineStats stats() const;
  [[nodiscard]] EvictionStats eviction_stats() const;
  // That are kept, to be run again.
  [[nodiscard]] std::size_t recorded_calls() const;
  // All that there are, in no order.
  struct PlacedBlock {
    BlockId block;
    BlockInfo info;
  };
  [[nodiscard]] std::vector<PlacedBlock> blocks() const;
  // Where the pool's bytes are.
  [[nodiscard]] MemoryReport report() const;
  // Since the last begin_loss_anew().
  [[nodiscard]] Loss loss() const;
  void begin_loss_anew();
  [[nodiscard]] double now() const;  // nanoseconds of operators run so far

  // While no other thread uses the engine, or from a function of the world that is called under its lock.
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Pool& pool() const { return pool_; }
  // O(n). Throws InternalError where an invariant does not hold.
  void validate() const;

 private:
  friend class Replay;
  class Entry;
  class Told;

  // BlockOwner
  void evict(BlockId block) override;
  void relocate(BlockId block, Bytes from, Bytes to, Bytes bytes) override;
  void prepare_search() override;
  bool correct_costs(std::span<const BlockId> victims) override;
  bool keeps_some(std::span<const BlockId> victims) noexcept override;
  [[nodiscard]] double copy_ns_per_byte() const override;
  [[nodiscard]] LargeBlock witness(BlockId block, const BlockInfo& info) const override;
  // GraphListener
  void value_goes(ValueId id, const Value& value) noexcept override;
  void call_goes(CallId id, const Call& call) noexcept override;

  [[nodiscard]] ValueId current_of(StorageId id) const;
  [[nodiscard]] bool can_begin_at_once(std::span<const StorageId> reads,
                                       std::span<const Write> writes) const;
  void bring_back(std::span<const ValueId> targets, std::vector<BlockId>& pins);
  void bring_back_or_gather(std::span<const ValueId> targets, std::vector<BlockId>& pins);
  RunningCall begin(Entry& entry, std::span<const StorageId> reads, std::span<const Write> writes);
  void abort(RunningCall& call) noexcept;
  void make_source(StorageId storage);
  void tell_what_there_is();
  [[nodiscard]] bool is_inside_replay() const { return replaying_ == std::this_thread::get_id(); }
  [[nodiscard]] RunningCall new_running_call();
  void finish(RunningCall& call) noexcept;
  [[nodiscard]] bool changes_state(const RunningCall& call) const noexcept;
  void adopt_written(const RunningCall& call, CallId recorded) noexcept;
  void tell_of_written(const RunningCall& call) noexcept;
  void note_writes(const RunningCall& call, bool changes_what_lasts) noexcept;
  void note_written(StorageId id, bool is_of_a_step) noexcept;
  void reserve_forgotten();

  // Blocks and what they hold (blocks.cpp)
  enum class Lies : std::uint8_t { kInPool, kInItsPlace, kElsewhere };
  StorageId add_source_that(Lies lies, Token token, Bytes bytes, BlockId block);
  StorageId add_storage(Token token, Bytes bytes, BlockId block, Lies lies);
  BlockId take(Bytes bytes, double cost = 0);
  BlockId take_for_long(Bytes bytes);
  BlockId pin_taken(BlockId block);
  void make_room_beside(std::span<const ValueId> values, Bytes bytes);
  BlockId take_or_end_orphans(const Request& request);
  void give_back(BlockId block) noexcept;
  void pin(BlockId block, std::vector<BlockId>& pins);
  void unpin_all(std::vector<BlockId>& pins) noexcept;
  void place(ValueId id, BlockId block) noexcept;
  BlockId displace(ValueId id) noexcept;
  void publish(ValueId id) noexcept;
  enum class Asked : std::uint8_t { kInAdvance, kBySearch };
  bool reprice(ValueId id, Asked asked) noexcept;
  [[nodiscard]] double asking_price(const Value& value, Asked asked) noexcept;
  [[nodiscard]] double cost_of(const Value& value, Asked asked) noexcept;
  [[nodiscard]] bool is_pricing_put_off() noexcept;
  void begin_pricing();
  [[nodiscard]] bool keeps_regions() const;
  void enter_region(ValueId id) noexcept;
  void leave_region(ValueId id) noexcept;
  [[nodiscard]] Token token_of(ValueId id) const noexcept;
  [[nodiscard]] bool is_observed() const {
    return options_.observer != nullptr || watcher_ != nullptr;
  }
  [[nodiscard]] EngineEvent about(EngineEvent::Kind kind, BlockId block,
                                  ValueId id = {}) const noexcept;
  void tell(EngineEvent event) noexcept;

  // Following a plan (planned_step.cpp)
  void begin_forecast() noexcept;
  [[nodiscard]] StorageUse use_of(StorageId id, bool reads_old = true) const;
  [[nodiscard]] static StorageUse use_of(const Storage& storage, const Value& value,
                                         bool reads_old);
  void tell_forecast_of_begin(std::span<const StorageId> reads, std::span<const Write> writes);
  void prepare_forecast_of_end(const RunningCall& call, const CallResult& result);
  void tell_forecast_of_end(const RunningCall& call, const CallResult& result, CallId recorded,
                            std::span<const StorageId> made) noexcept;
  void plan_step_ahead() noexcept;
  void begin_memory_of_call() noexcept;
  void bind_to_plan(CallId id, std::uint32_t step_call) noexcept;
  void follow_plan() noexcept;
  [[nodiscard]] std::optional<StepPlan::Version> planned_version(const Value& value) const noexcept;
  [[nodiscard]] bool is_planned_absent(const Value& value) const noexcept;
  [[nodiscard]] bool is_worth_keeping(StorageId id) const noexcept;
  void drop_if_planned(ValueId id);
  [[nodiscard]] bool is_as_planned() const { return forecast_ && forecast_->is_as_planned(); }
  [[nodiscard]] std::vector<ValueId> planned_along() const;
  [[nodiscard]] bool has_planned_alone() const;
  void expect_allocations_by(const Call& call) noexcept;
  std::optional<BlockId> take_planned(const Request& request);

  // Writes (write_barrier.cpp) and the bounds of lineage (lineage_bounds.cpp)
  void prepare_writes(std::span<const Write> writes, RunningCall& call);
  void begin_write(RunningCall::Written& write, std::uint32_t output, RunningCall& call) noexcept;
  BlockId protect(std::span<const ValueId> descendants, ValueId source);
  BlockId copy_aside(ValueId source);
  struct Descendants {
    std::vector<ValueId> current;  // the nearest
    // Some past ones on the way are being overwritten by operators that run, which may yet be recorded as
    // made from them, or fail and need them back. They cannot be made Sources.
    bool are_in_use = false;
    bool are_all = true;
  };
  [[nodiscard]] Descendants find_descendants(std::span<const ValueId> values, std::size_t most);
  void make_sources(std::span<const ValueId> values);
  void cut(ValueId id) noexcept;
  void note_orphan(ValueId id) noexcept;
  void reserve_orphans(std::size_t more);
  [[nodiscard]] bool is_orphan_worth_keeping(ValueId orphan, std::size_t most_walked);
  void end_next_orphan(std::size_t most_walked);
  enum class Evicted : std::uint8_t { kStay, kComeBack };
  bool end_orphans(std::span<const ValueId> orphans, std::size_t most_walked, Evicted evicted);
  bool end_all_orphans();
  bool end_orphans_between(Bytes begin, Bytes end);
  void end_some_orphans();
  [[nodiscard]] Bytes orphaned_bytes_behind(ValueId value);
  void bound_lineage();
  [[nodiscard]] std::size_t most_hidden() const;
  void end_oldest_hidden();

  Pool& pool_;
  Policy& policy_;
  World& world_;
  EngineOptions options_;
  EvictingPool evicting_;
  Graph graph_;
  EvictedRegions regions_;
  DensitySplit density_;
  DensityHistogram recorded_density_;  // of what Calls made that can be run again
  EngineStats stats_;
  Patience patience_;
  LossMeter loss_;
  RequestObserver* requests_ = nullptr;
  EngineObserver* watcher_ = nullptr;
  double now_ = 0;
  std::uint64_t calls_begun_ = 0;
  std::uint64_t replays_begun_ = 0;
  std::uint64_t replay_at_ = 0;  // sequence of the Call that is run again
  double replay_cost_ = std::numeric_limits<double>::infinity();  // of all that it has planned
  bool is_replay_in_circles_ = false;
  std::uint64_t walks_begun_ = 0;
  bool has_searched_ = false;       // before that, nobody asks what things cost
  bool have_costs_fallen_ = false;  // since the last search
  std::size_t priced_since_search_ = 0;
  Bytes least_room_ =
      std::numeric_limits<Bytes>::max();  // that there has been beside what cannot go
  std::vector<ValueId> value_of_;  // by BlockId::index(); none: workspace, or not yet handed over
  std::vector<ValueId> orphans_;   // Sources that lost their storage
  std::size_t next_orphan_ = 0;    // to be looked at
  std::size_t orphan_looks_due_ = 0;
  Bytes held_when_swept_ = 0;       // by lineage
  std::size_t hidden_allowed_ = 0;  // beyond the bound: there was no memory to end them
  std::vector<ValueId> targets_;    // of the Call that begins
  std::vector<RunningCall> spare_calls_;

  std::optional<Forecast> forecast_;
  std::uint64_t storages_added_ = 0;
  std::vector<StorageUse> uses_;  // of the Call that begins or ends
  std::vector<ValueId> bound_;    // by version of the plan, in this round
  std::uint32_t bound_round_ = 0;
  bool has_moved_for_plan_ = false;
  CallMemory call_memory_;  // of the Call that began last, while there is a forecast

  mutable std::mutex mutex_;
  std::condition_variable replay_ended_;
  std::thread::id replaying_;  // the thread that runs a Call again, without the lock
  // Calls that are gone and of which the world is told once the lock is free: what it drops then may
  // call us.
  std::vector<Token> forgotten_;
  bool is_forgetting_ = false;
};

}  // namespace coop
