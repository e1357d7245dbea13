#pragma once

// What the program has been doing lately: storages that came and went, Calls with what they read, wrote and
// made. From a stretch of it comes the record of a step (core/plan/step_record.hpp).
//
// Storages are known by serial numbers that are never used again. Calls are numbered from the program's first,
// events from the beginning of the log; the oldest are forgotten when there are too many.

#include <cstdint>
#include <span>

#include "core/base/bytes.hpp"
#include "core/base/numbered_queue.hpp"
#include "core/plan/step_record.hpp"

namespace coop {

// A storage's part in a Call.
struct StorageUse {
  std::uint64_t storage = 0;
  Bytes bytes = 0;
  // Number of the Call that wrote or made what it holds; 0 if that cannot be made again: its age says little, a
  // parameter comes from outside once and is updated later.
  std::uint64_t written_at = 0;
  bool is_from_outside = false;    // no Call made it
  bool is_source = false;          // what it holds cannot be made again
  bool is_source_forever = false;  // nor what is written there
  bool reads_old = true;           // of a storage that is written
};

struct LoggedCall {
  double cost = 0;
  Bytes workspace = 0;
  bool is_replayable = false;
  double recomputed = 0;         // nanoseconds that went into running Calls again, so far
  std::uint64_t begin_hash = 0;  // of what it reads and writes, by age and size
  std::uint64_t hash = 0;        // and of what it makes
  static constexpr std::uint32_t kNowhere = 0xffffffff;
  std::uint32_t place = kNowhere;  // in the plan
  // Between the Call before and this one: where the program had the least in large storages, and how much.
  std::uint64_t least_at = 0;  // events so far
  std::int64_t least_bytes = 0;
  // Where its parts of the shared lists end.
  std::uint64_t reads_end = 0;
  std::uint64_t writes_end = 0;
  std::uint64_t makes_end = 0;
  std::uint64_t pieces_end = 0;
};

class StepLog {
 public:
  // Storages of up to `small` bytes do not count as large; no more than `most_calls` are kept.
  StepLog(Bytes small, std::size_t most_calls, std::uint64_t calls_before)
      : small_(small), most_calls_(most_calls), calls_(calls_before + 1) {}

  void source_comes(const StorageUse& storage);
  void lineage_ends(const StorageUse& storage);
  void storage_goes(const StorageUse& storage);
  void call_ends(LoggedCall call, std::span<const StorageUse> reads,
                 std::span<const StorageUse> writes, std::span<const StorageUse> makes,
                 std::span<const StepRecord::Piece> pieces = {});

  // Calls so far, with those before the log; the first of all has number 1.
  [[nodiscard]] std::uint64_t calls() const { return calls_.end() - 1; }
  [[nodiscard]] bool has_call(std::uint64_t number) const { return calls_.contains(number); }
  [[nodiscard]] const LoggedCall& call(std::uint64_t number) const { return calls_[number]; }
  void set_place(std::uint64_t number, std::uint32_t place) { calls_[number].place = place; }
  // What is older than the latest `calls` is forgotten.
  void keep_latest(std::size_t calls);
  // There is a new plan.
  void clear_places();

  // In large storages, against the beginning of the log.
  [[nodiscard]] std::int64_t live_bytes() const { return live_; }
  // Where the program had the least since the last Call, as events so far.
  [[nodiscard]] std::uint64_t least_at() const { return least_at_; }
  [[nodiscard]] std::int64_t least_bytes() const { return least_; }

  // What happened after the first `from` events, up to and with event `until`. The first Call of it is
  // `first_call`.
  [[nodiscard]] StepRecord record(std::uint64_t from, std::uint64_t until,
                                  std::uint64_t first_call) const;

 private:
  struct Event {
    StepRecord::Kind kind = StepRecord::Kind::kCall;
    StorageUse storage;
  };

  void add_live(Bytes bytes, int sign);
  void forget_oldest();

  Bytes small_;
  std::size_t most_calls_;
  NumberedQueue<Event> events_;
  NumberedQueue<LoggedCall> calls_;
  NumberedQueue<StorageUse> reads_;
  NumberedQueue<StorageUse> writes_;
  NumberedQueue<StorageUse> makes_;
  NumberedQueue<StepRecord::Piece> pieces_;
  std::int64_t live_ = 0;
  std::int64_t least_ = 0;
  std::uint64_t least_at_ = 0;
};

}  // namespace coop
