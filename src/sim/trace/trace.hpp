#pragma once

// What a program did to its memory, in order: the simulator runs it again under any budget.
//
//     events:    source 0 | source 1 | step | call 0 | release 1 | call 1 | ...
//     storages:  bytes, name and whether it is a source, by number
//     calls:     op, module, cost, and ranges of one shared array for what it reads and writes
//
// Storages and calls are numbered in the order in which they appear, without gaps. So what a call
// makes needs no list: its outputs are the next numbers. Everything lies in a few flat arrays; a trace
// of a million calls is a few dozen megabytes and a few allocations.
//
// What always holds, because only TraceBuilder makes traces:
//   - An event names storages that exist, and none that has been released.
//   - A call writes no storage twice; costs are finite and not negative; sizes are at most kMostBytes.
//   - Pins and unpins pair up, and what is pinned is not released. Nor is what a run uses that has begun.
//   - Memory without a storage is freed once, or becomes a storage's; a call takes no more than it gives back.
//
// Steps. A step begins at each kStep and ends at the next, or at the end; what comes before the first
// is preparation and belongs to none. A trace without kStep is one step.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/pool/grain.hpp"

namespace coop::sim {

enum class StorageNumber : std::uint32_t {};
enum class CallNumber : std::uint32_t {};
enum class NameNumber : std::uint32_t {};
enum class BlockNumber : std::uint32_t {};
enum class RunNumber : std::uint32_t {};

template <typename Number>
constexpr std::uint32_t index_of(Number number) {
  return static_cast<std::uint32_t>(number);
}

// The empty name: of no module in particular.
inline constexpr NameNumber kNoName{0};

// Of what is a storage's own, and of what runs in one piece.
inline constexpr BlockNumber kNoBlock{0xFFFFFFFF};
inline constexpr RunNumber kNoRun{0xFFFFFFFF};
inline constexpr StorageNumber kNoStorage{0xFFFFFFFF};

// No storage can be larger than the largest pool.
inline constexpr Bytes kMostBytes = kMaxPoolBytes;
// Thirty years: no operator takes longer, and sums of costs stay finite.
inline constexpr double kMostCostNs = 1e18;

enum class EventKind : std::uint8_t {
  kSource,    // a storage whose contents come from outside
  kCall,      // an operator runs
  kRelease,   // the program has no more use for a storage
  kExport,    // a raw pointer to a storage is taken: its address must not change any more
  kPin,       // a storage stays where it is ...
  kUnpin,     // ... until here
  kStep,      // a step begins
  kAnnotate,  // a remark, such as "backward"

  // What recordings have, too.
  kForeign,   // a storage that lies elsewhere: its bytes count, and that is all
  kBlock,     // memory is taken that is no storage's, ...
  kFree,      // ... and given back, ...
  kAdopt,     // ... or becomes that of a storage whose contents come from outside
  kBegin,     // an operator begins during which something else happens: a run, ...
  kRoom,      // ... for which what it reads is moved aside, so that it can be begun anew, ...
  kFinish,    // ... which ends: a call, ...
  kAbort,     // ... or fails
  kKeep,      // a storage stays where it is for good, as it is
  kSettle,    // it is there, and is not made again from now on
  kBring,     // it is there at this moment
  kEvictAll,  // all that may go goes
  kCompact,   // all that may move is pushed together
  kFails,     // what comes next was out of memory
  // What was decided then, told before the event that it was decided for. A simulation does as it sees fit.
  kEvicted,  // a storage lost its memory; kNoStorage: a version that has since been overwritten did
  kAgain,    // a call was run again
};

struct TraceEvent {
  EventKind kind = EventKind::kStep;
  std::uint32_t subject = 0;  // number of the storage, call or name; 0 for a step

  [[nodiscard]] StorageNumber storage() const { return StorageNumber{subject}; }
  [[nodiscard]] CallNumber call() const { return CallNumber{subject}; }
  [[nodiscard]] NameNumber name() const { return NameNumber{subject}; }
  [[nodiscard]] BlockNumber block() const { return BlockNumber{subject}; }
  [[nodiscard]] RunNumber run() const { return RunNumber{subject}; }
  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

struct TraceStorage {
  Bytes bytes = 0;
  NameNumber name = kNoName;
  bool is_output = false;  // of a call; otherwise it comes from outside
  bool is_source = false;  // comes from outside, or cannot be made again though its call can be
  BlockNumber block = kNoBlock;  // that it was before
  friend bool operator==(const TraceStorage&, const TraceStorage&) = default;
};

struct TraceWrite {
  StorageNumber storage{};
  bool reads_old = true;  // false: all of it is overwritten, whatever it was
  friend bool operator==(const TraceWrite&, const TraceWrite&) = default;
};

// Memory that is no storage's.
struct TraceBlock {
  Bytes bytes = 0;
  double cost_ns = 0;                     // what it is for was expected to take
  StorageNumber adopted_by = kNoStorage;  // if it became that of a storage from outside
  RunNumber room_for = kNoRun;            // it was never taken: there must be room for it
  bool lives_long = false;                // it stays for good, with what lives long
  friend bool operator==(const TraceBlock&, const TraceBlock&) = default;
};

// What an operator does about memory while it runs.
struct MemoryStep {
  enum class Kind : std::uint8_t {
    kOutput,  // for the output of this number is taken, ...
    kTake,    // ... so many bytes are, for something else; the first of those is 0, the next 1, ...
    kGive,    // ... and the one of this number is given back
  };
  Kind kind = Kind::kOutput;
  std::uint64_t value = 0;
  friend bool operator==(const MemoryStep&, const MemoryStep&) = default;
};

// What a recording was made with.
struct RecordedWith {
  Bytes budget = 0;
  Bytes small_limit = 0;
  double most_slowdown = 0;
  NameNumber policy = kNoName;
  bool has_decisions = false;  // all of them
  bool is_late = false;        // the budget was in use before: nobody knows what for
  friend bool operator==(const RecordedWith&, const RecordedWith&) = default;
};

// What a run reads and writes.
struct TraceRun {
  std::span<const StorageNumber> reads;
  std::span<const TraceWrite> writes;
};

struct TraceCall {
  double cost_ns = 0;
  double expected_ns = 0;     // what it was expected to take when its memory was allocated
  Bytes workspace_bytes = 0;  // memory that it needs beside, while it runs
  NameNumber op = kNoName;
  NameNumber module = kNoName;
  bool is_replayable = true;
  bool is_random = false;
  StorageNumber first_output{};
  std::uint32_t outputs = 0;  // numbers first_output, first_output + 1, ...
  std::span<const StorageNumber> reads;
  std::span<const TraceWrite> writes;
  // Empty: first its outputs, then its workspace. Of a run only what happens when it is run again.
  std::span<const MemoryStep> memory;
  RunNumber run = kNoRun;

  [[nodiscard]] StorageNumber output(std::uint32_t i) const {
    return StorageNumber{index_of(first_output) + i};
  }
};

class Trace {
 public:
  [[nodiscard]] std::span<const TraceEvent> events() const { return events_; }
  [[nodiscard]] std::span<const TraceStorage> storages() const { return storages_; }
  [[nodiscard]] std::size_t call_count() const { return calls_.size(); }
  [[nodiscard]] std::size_t name_count() const { return names_.size(); }

  [[nodiscard]] const TraceStorage& storage(StorageNumber number) const {
    return storages_[index_of(number)];
  }
  // Its spans are good as long as the trace is.
  [[nodiscard]] TraceCall call(CallNumber number) const {
    const CallRecord& record = calls_[index_of(number)];
    const bool is_first = index_of(number) == 0;
    const std::size_t reads_begin = is_first ? 0 : calls_[index_of(number) - 1].reads_end;
    const std::size_t writes_begin = is_first ? 0 : calls_[index_of(number) - 1].writes_end;
    const std::size_t memory_begin = is_first ? 0 : calls_[index_of(number) - 1].memory_end;
    return {.cost_ns = record.cost_ns,
            .expected_ns = record.expected_ns,
            .workspace_bytes = record.workspace_bytes,
            .op = record.op,
            .module = record.module,
            .is_replayable = record.is_replayable,
            .is_random = record.is_random,
            .first_output = record.first_output,
            .outputs = record.outputs,
            .reads = {reads_.data() + reads_begin, record.reads_end - reads_begin},
            .writes = {writes_.data() + writes_begin, record.writes_end - writes_begin},
            .memory = {memory_.data() + memory_begin, record.memory_end - memory_begin},
            .run = record.run};
  }
  [[nodiscard]] TraceRun run(RunNumber number) const {
    const RunRecord& record = runs_[index_of(number)];
    return {.reads = record.reads, .writes = record.writes};
  }
  [[nodiscard]] std::size_t run_count() const { return runs_.size(); }
  [[nodiscard]] const TraceBlock& block(BlockNumber number) const {
    return blocks_[index_of(number)];
  }
  [[nodiscard]] std::size_t block_count() const { return blocks_.size(); }
  [[nodiscard]] const std::optional<RecordedWith>& recorded_with() const { return recorded_with_; }
  // Of the format: 1 has no word for what only recordings have.
  [[nodiscard]] int version() const { return needs_version_2_ ? 2 : 1; }
  [[nodiscard]] const std::string& name(NameNumber number) const {
    return names_[index_of(number)];
  }
  // At least one: a trace without marks is one step.
  [[nodiscard]] std::size_t step_count() const { return step_marks_ == 0 ? 1 : step_marks_; }
  [[nodiscard]] bool has_step_marks() const { return step_marks_ > 0; }

  // Same events with the same names in the same order of first use.
  friend bool operator==(const Trace&, const Trace&) = default;

 private:
  friend class TraceBuilder;

  struct CallRecord {
    double cost_ns = 0;
    double expected_ns = 0;
    Bytes workspace_bytes = 0;
    NameNumber op = kNoName;
    NameNumber module = kNoName;
    StorageNumber first_output{};
    std::uint32_t outputs = 0;
    // Where its part of the shared arrays ends; it begins where that of the call before ends.
    std::uint32_t reads_end = 0;
    std::uint32_t writes_end = 0;
    std::uint32_t memory_end = 0;
    RunNumber run = kNoRun;
    bool is_replayable = true;
    bool is_random = false;
    friend bool operator==(const CallRecord&, const CallRecord&) = default;
  };

  // There are few of them.
  struct RunRecord {
    std::vector<StorageNumber> reads;
    std::vector<TraceWrite> writes;
    friend bool operator==(const RunRecord&, const RunRecord&) = default;
  };

  std::vector<TraceEvent> events_;
  std::vector<TraceStorage> storages_;
  std::vector<CallRecord> calls_;
  std::vector<StorageNumber> reads_;
  std::vector<TraceWrite> writes_;
  std::vector<MemoryStep> memory_;
  std::vector<TraceBlock> blocks_;
  std::vector<RunRecord> runs_;
  std::optional<RecordedWith> recorded_with_;
  bool needs_version_2_ = false;
  std::deque<std::string> names_{std::string()};
  std::size_t step_marks_ = 0;
};

}  // namespace coop::sim
