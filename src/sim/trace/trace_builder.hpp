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
  bool is_source = false;  // cannot be made again even though its call can
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
  void release(StorageNumber storage);
  void export_pointer(StorageNumber storage);
  // Pins do not nest: one pin, one unpin.
  void pin(StorageNumber storage);
  void unpin(StorageNumber storage);
  void begin_step();
  void annotate(NameNumber text);

  // What the next new storage and the next new name will be.
  [[nodiscard]] StorageNumber next_storage() const;
  [[nodiscard]] NameNumber next_name() const;
  [[nodiscard]] std::size_t event_count() const { return trace_.events_.size(); }
  [[nodiscard]] Bytes bytes_of(StorageNumber storage) const;

  // The trace so far; the builder begins again with nothing. What is still pinned is an error.
  Trace finish();

 private:
  enum class State : std::uint8_t { kAlive, kPinned, kReleased };

  void check_name(NameNumber name) const;
  void check_alive(StorageNumber storage, const char* doing) const;
  void check_new_storages(std::span<const NewStorage> storages) const;
  void check_call(const NewCall& call);
  void reserve_for_call(const NewCall& call);
  void add_event(EventKind kind, std::uint32_t subject);
  void add_storage(const TraceStorage& storage);

  Trace trace_;
  std::vector<State> states_;              // by storage
  std::vector<std::uint64_t> written_in_;  // by storage: the last check that saw a call write it
  std::uint64_t checks_ = 0;
  Bytes total_bytes_ = 0;  // of all storages ever, which bounds every sum
  std::size_t pinned_ = 0;
  // The keys look into the trace's names, which lie in a deque and so never move.
  std::unordered_map<std::string_view, NameNumber> numbers_;
};

}  // namespace coop::sim
