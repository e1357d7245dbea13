#pragma once

// What the program is going to do, because it has done it before: learns the sequence of Calls, finds out that
// it repeats itself, has a plan made for the next time round, and keeps the place in it.
//
// Note [Forecast]
//
// 1. Every Call is logged with a hash of its structure: what it reads, by size and by how many Calls ago it was
//    made; what it writes and makes. Layers of a network look alike; what marks a place in a step is, besides,
//    which of the storages that were always there it uses (parameters), and how much is alive.
// 2. Where marks repeat at the same distance for a third of it, the distance is the length of a step
//    (Repetition). A step is taken to begin where the least is alive.
// 3. When it begins the next time, the step that just ended is written down and a plan is made for it.
// 4. From then on every Call is compared with the one that the plan expects. If it is another one, the plan is
//    left. It is found again where the marks are those of a place in it.
// 5. A plan is only good if it costs less than the step did without one. If it turns out not to, it is dropped.
//
// Nothing depends on it: whoever follows the plan does what it could do anyway. Whatever fails here, for want
// of memory, ends the forecast and not the program. Memory is bounded.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/forecast/repetition.hpp"
#include "core/forecast/step_log.hpp"
#include "core/plan/planner.hpp"
#include "core/plan/step_plan.hpp"

namespace coop {

struct ForecastOptions {
  Bytes budget = 0;
  Bytes small_limit = 0;
  std::uint32_t most_depth = 0;
  std::uint64_t calls_before = 0;                  // which are not in the log
  std::uint64_t storages_before = 0;               // serials up to this one were there before
  std::size_t most_calls = std::size_t{1} << 16U;  // in the log
};

class Forecast {
 public:
  explicit Forecast(const ForecastOptions& options);

  // --- what the program does ---

  void source_comes(const StorageUse& storage) noexcept;
  void lineage_ends(const StorageUse& storage) noexcept;
  void storage_goes(const StorageUse& storage) noexcept;
  void call_begins(std::span<const StorageUse> reads, std::span<const StorageUse> writes) noexcept;
  struct EndedCall {
    std::span<const StorageUse> reads;
    std::span<const StorageUse> writes;
    std::span<const StorageUse> makes;
    double cost = 0;
    Bytes workspace = 0;
    std::span<const StepRecord::Piece> pieces;
    bool is_replayable = false;
    double recomputed = 0;  // nanoseconds that went into running Calls again, so far
  };
  // Its number in the plan, if it is what the plan expected; call_is_over() when that has been seen to.
  std::optional<std::uint32_t> call_ends(const EndedCall& call) noexcept;
  void call_is_over() noexcept;
  // The number of the next Call.
  [[nodiscard]] std::uint64_t next_call() const { return log_.calls() + 1; }

  // --- the plan ---

  // A step begins, and there is no plan for it, or none that fits.
  [[nodiscard]] bool wants_plan() const;
  // `held`: what is in the pool now, and stays.
  void make_plan(std::span<const ByteRange> held) noexcept;

  // None: there is none, or the program does something else.
  [[nodiscard]] const StepPlan* plan() const { return is_following_ ? &*plan_ : nullptr; }
  // The Call that began last is the one that the plan expects.
  [[nodiscard]] bool is_as_planned() const { return is_following_ && is_expected_; }
  // The Call that runs or comes next.
  [[nodiscard]] std::uint32_t now() const { return now_; }
  // Counts the times that a step has begun.
  [[nodiscard]] std::uint32_t round() const { return round_; }

  // --- places ---

  // What is allocated next is allocated by this Call of the plan, or on its way in from outside.
  static constexpr std::uint32_t kArrives = StepPlan::kOutside;
  void allocations_by(std::uint32_t call) noexcept;
  // By the Call that has begun.
  void resume_places() noexcept;
  void no_places() noexcept { places_ = {}; }
  [[nodiscard]] std::optional<Bytes> place_for(Bytes bytes) noexcept;
  void note_placed(bool is_as_planned) noexcept;

 private:
  template <typename Function>
  void unless_failed(Function&& fn) noexcept;
  [[nodiscard]] std::uint64_t hash_of(std::span<const StorageUse> reads,
                                      std::span<const StorageUse> writes) const;
  [[nodiscard]] std::uint64_t mark_of(const EndedCall& call, std::uint64_t hash) const;
  void look_for_step();
  void write_step_down(std::span<const ByteRange> held);
  void find_place_again();
  void follow(std::uint32_t from) noexcept;
  void begin_round() noexcept;
  void leave() noexcept;
  void drop_plan() noexcept;
  void put_off() noexcept;
  void stop() noexcept;

  ForecastOptions options_;
  StepLog log_;
  Repetition repetition_;
  // The Call at whose beginning the next step is expected to begin; 0: none is.
  std::uint64_t expected_at_ = 0;
  std::uint64_t period_ = 0;

  // A plan that does not come about is tried again, but ever more seldom.
  std::uint64_t not_before_ = 0;
  std::uint32_t failures_ = 0;

  struct Expected {
    std::uint64_t begins = 0;  // hashes
    std::uint64_t ends = 0;
  };
  StepRecord step_;  // that the plan is for
  std::vector<Expected> expected_;
  std::optional<StepPlan> plan_;
  bool is_following_ = false;
  std::uint64_t left_at_ = 0;  // the Call before that which was not expected
  std::uint32_t leaves_ = 0;   // since it was last followed to its end
  bool is_expected_ = false;   // what began last
  std::uint32_t now_ = 0;
  std::uint32_t round_ = 0;
  bool is_whole_round_ = false;  // the plan was followed from its beginning
  double unplanned_ = 0;         // nanoseconds of recomputation in the step without a plan
  double recomputed_ = 0;        // so far
  double round_began_at_ = 0;    // with so much

  std::span<const StepPlan::Place> places_;
  std::vector<bool> are_taken_;
  std::uint32_t as_planned_ = 0;  // blocks of this round
  std::uint32_t elsewhere_ = 0;
  int replans_left_ = 0;
  bool has_failed_ = false;  // for want of memory: it is over
};

}  // namespace coop
