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
//   - Pins and unpins pair up, and what is pinned is not released.
//
// Steps. A step begins at each kStep and ends at the next, or at the end; what comes before the first
// is preparation and belongs to none. A trace without kStep is one step.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/pool/grain.hpp"

namespace coop::sim {

enum class StorageNumber : std::uint32_t {};
enum class CallNumber : std::uint32_t {};
enum class NameNumber : std::uint32_t {};

template <typename Number>
constexpr std::uint32_t index_of(Number number) {
  return static_cast<std::uint32_t>(number);
}

// The empty name: of no module in particular.
inline constexpr NameNumber kNoName{0};

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
};

struct TraceEvent {
  EventKind kind = EventKind::kStep;
  std::uint32_t subject = 0;  // number of the storage, call or name; 0 for a step

  [[nodiscard]] StorageNumber storage() const { return StorageNumber{subject}; }
  [[nodiscard]] CallNumber call() const { return CallNumber{subject}; }
  [[nodiscard]] NameNumber name() const { return NameNumber{subject}; }
  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

struct TraceStorage {
  Bytes bytes = 0;
  NameNumber name = kNoName;
  bool is_output = false;  // of a call; otherwise it comes from outside
  bool is_source = false;  // comes from outside, or cannot be made again though its call can be
  friend bool operator==(const TraceStorage&, const TraceStorage&) = default;
};

struct TraceWrite {
  StorageNumber storage{};
  bool reads_old = true;  // false: all of it is overwritten, whatever it was
  friend bool operator==(const TraceWrite&, const TraceWrite&) = default;
};

struct TraceCall {
  double cost_ns = 0;
  Bytes workspace_bytes = 0;  // memory that it needs beside, while it runs
  NameNumber op = kNoName;
  NameNumber module = kNoName;
  bool is_replayable = true;
  bool is_random = false;
  StorageNumber first_output{};
  std::uint32_t outputs = 0;  // numbers first_output, first_output + 1, ...
  std::span<const StorageNumber> reads;
  std::span<const TraceWrite> writes;

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
    return {.cost_ns = record.cost_ns,
            .workspace_bytes = record.workspace_bytes,
            .op = record.op,
            .module = record.module,
            .is_replayable = record.is_replayable,
            .is_random = record.is_random,
            .first_output = record.first_output,
            .outputs = record.outputs,
            .reads = {reads_.data() + reads_begin, record.reads_end - reads_begin},
            .writes = {writes_.data() + writes_begin, record.writes_end - writes_begin}};
  }
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
    Bytes workspace_bytes = 0;
    NameNumber op = kNoName;
    NameNumber module = kNoName;
    StorageNumber first_output{};
    std::uint32_t outputs = 0;
    // Where its part of the shared arrays ends; it begins where that of the call before ends.
    std::uint32_t reads_end = 0;
    std::uint32_t writes_end = 0;
    bool is_replayable = true;
    bool is_random = false;
    friend bool operator==(const CallRecord&, const CallRecord&) = default;
  };

  std::vector<TraceEvent> events_;
  std::vector<TraceStorage> storages_;
  std::vector<CallRecord> calls_;
  std::vector<StorageNumber> reads_;
  std::vector<TraceWrite> writes_;
  std::deque<std::string> names_{std::string()};
  std::size_t step_marks_ = 0;
};

}  // namespace coop::sim
