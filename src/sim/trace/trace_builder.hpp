#pragma once

// The only way to make a trace. Every event is checked when it is added, in constant time; one that
// makes no sense throws TraceError, which says what is wrong with it, and leaves the trace as it was.

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/trace/trace.hpp"
#include "sim/trace/trace_error.hpp"

namespace coop::sim {

struct NewStorage {
  Bytes bytes = 0;
  NameNumber name = kNoName;
  bool is_source = false;        // cannot be made again even though its call can
  BlockNumber block = kNoBlock;  // of a run: what it lies in
};

struct NewCall {
  NameNumber op = kNoName;
  NameNumber module = kNoName;
  double cost_ns = 0;
  Bytes workspace_bytes = 0;
  bool is_replayable = true;
  bool is_random = false;
  std::span<const StorageNumber> reads;
  std::span<const TraceWrite> writes;
  std::span<const NewStorage> outputs;
  std::span<const MemoryStep> memory;  // with it, the workspace follows from it
  double expected_ns = 0;              // with `memory` only
};

class TraceBuilder {
 public:
  TraceBuilder() = default;
  TraceBuilder(const TraceBuilder&) = delete;
  TraceBuilder& operator=(const TraceBuilder&) = delete;
  TraceBuilder(TraceBuilder&&) = default;
  TraceBuilder& operator=(TraceBuilder&&) = default;
  ~TraceBuilder() = default;

  // The number of this text; the same text has the same number.
  NameNumber name(std::string_view text);

  StorageNumber add_source(Bytes bytes, NameNumber name = kNoName);
  // The number of its first output, or of the next storage if it makes none.
  StorageNumber add_call(const NewCall& call);
  // What people call it; of one that is there. It may have had another.
  void set_name(StorageNumber storage, NameNumber name);
  void release(StorageNumber storage);
  void export_pointer(StorageNumber storage);
  // Pins do not nest: one pin, one unpin.
  void pin(StorageNumber storage);
  void unpin(StorageNumber storage);
  void begin_step();
  void annotate(NameNumber text);

  // --- what recordings have, too (trace_builder_runs.cpp) ---

  // Before any event.
  void set_recorded_with(const RecordedWith& with);
  StorageNumber add_foreign(Bytes bytes, NameNumber name = kNoName);
  BlockNumber add_block(Bytes bytes, double cost_ns, bool lives_long = false);
  void free(BlockNumber block);
  StorageNumber adopt(Bytes bytes, BlockNumber block, NameNumber name = kNoName);
  RunNumber begin(std::span<const StorageNumber> reads, std::span<const TraceWrite> writes);
  // Of one that writes nothing.
  BlockNumber room(RunNumber run, Bytes bytes);
  // Like add_call.
  StorageNumber finish_run(RunNumber run, const NewCall& call);
  void abort(RunNumber run);
  void keep(StorageNumber storage);
  void settle(StorageNumber storage);
  void bring(StorageNumber storage);
  // kEvictAll, kCompact, kFails.
  void note(EventKind kind);
  void evicted(StorageNumber storage);  // or kNoStorage
  void ran_again(CallNumber call);

  // What the next new storage and the next new name will be.
  [[nodiscard]] StorageNumber next_storage() const;
  [[nodiscard]] NameNumber next_name() const;
  [[nodiscard]] BlockNumber next_block() const;
  [[nodiscard]] RunNumber next_run() const;
  [[nodiscard]] std::size_t event_count() const { return trace_.events_.size(); }
  [[nodiscard]] Bytes bytes_of(StorageNumber storage) const;

  // The trace so far; the builder begins again with nothing. What is still pinned or runs is an error.
  Trace finish();

 private:
  // Failed: it could not be had when it was recorded, and can only be released.
  enum class State : std::uint8_t { kAlive, kPinned, kReleased, kFailed };

  void check_name(NameNumber name) const;
  void check_alive(StorageNumber storage, const char* doing) const;
  void check_new_storages(std::span<const NewStorage> storages) const;
  void check_call(const NewCall& call);
  void check_uses(std::span<const StorageNumber> reads, std::span<const TraceWrite> writes);
  static void check_cost(double cost_ns);
  // What it takes beside its outputs, at most.
  enum class Leftovers : std::uint8_t { kNo, kYes };
  [[nodiscard]] static Bytes check_memory(const NewCall& call, Leftovers leftovers);
  void check_block(BlockNumber block, const char* doing) const;
  void check_there(BlockNumber block, const char* doing) const;
  void check_run(RunNumber run) const;
  void end_run(RunNumber run);
  void use(RunNumber run, int more);
  StorageNumber append_call(const NewCall& call, EventKind kind, RunNumber run, Bytes workspace);
  void needs_version_2() { trace_.needs_version_2_ = true; }
  void reserve_for_call(const NewCall& call);
  void add_event(EventKind kind, std::uint32_t subject);
  StorageNumber add_from_outside(EventKind kind, Bytes bytes, NameNumber name);
  void add_storage(const TraceStorage& storage);

  Trace trace_;
  std::vector<State> states_;              // by storage
  std::vector<std::uint64_t> written_in_;  // by storage: the last check that saw a call write it
  std::uint64_t checks_ = 0;
  Bytes total_bytes_ = 0;  // of all storages ever, which bounds every sum
  std::size_t pinned_ = 0;
  std::vector<std::uint32_t> users_;  // by storage: runs that have begun; as long as need be
  enum class BlockState : std::uint8_t { kHeld, kGone, kFailed };
  std::vector<BlockState> block_states_;
  enum class RunState : std::uint8_t { kOpen, kEnded, kFailed };
  std::vector<RunState> run_states_;
  bool is_failing_ = false;  // the next event is
  std::size_t open_runs_ = 0;
  // The keys look into the trace's names, which lie in a deque and so never move.
  std::unordered_map<std::string_view, NameNumber> numbers_;
};

}  // namespace coop::sim
