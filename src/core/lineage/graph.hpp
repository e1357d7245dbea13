#pragma once

// What was computed from what.
//
//     Storage ----current----> Value <---reads--- Call ---makes---> Value <----current---- Storage
//                                ^                                    |
//                                +-------------- producer -----------+
//
//   Storage  what the framework holds: memory under one name, however many views look at it.
//   Value    one version of a storage's contents. The storage's latest is *current*; one that was
//            overwritten, or whose storage is gone, is *past*: nobody can read it, but a Call may need
//            it to be run again.
//   Call     one recorded run of an operator. Values it made can be made again from those it read.
//   Source   a Value that no Call made: it cannot be made again.
//
// Who keeps whom alive: a Value lives while it is current, a Call reads it, or somebody holds it; a Call
// lives while one of its outputs does. So ownership follows the arrows from results back to what they were made from; the
// way forward (a Value's readers, a Call's outputs) is known, but keeps nothing alive. Time orders
// everything: a Call only reads Values that are older, so there are no cycles.
//
// Everything is in tables and linked by names: recording allocates nothing but table space, amortised.
// Letting go never throws, allocates, or recurses: a million Values that hang on the last one go in a
// loop.

#include <cstdint>
#include <span>

#include "core/base/bytes.hpp"
#include "core/base/handle.hpp"
#include "core/base/table.hpp"
#include "core/lineage/evicted_regions.hpp"
#include "core/pool/pool.hpp"

namespace coop {

struct Storage;
struct Value;
struct Call;
struct Edge;
using StorageId = Handle<Storage>;
using ValueId = Handle<Value>;
using CallId = Handle<Call>;
using EdgeId = Handle<Edge>;

// What the world knows a storage or a call by; the engine only passes it on.
using Token = std::uint64_t;

struct Storage {
  Token token = 0;
  ValueId current;
  bool is_source_forever = false;  // whatever is written here cannot be made again
  bool is_from_outside = false;    // no Call made it
  bool is_elsewhere = false;  // its contents are not in the pool: its block only takes their room
  // For the forecast: a number that no other storage has, and the Call that wrote it last.
  std::uint64_t serial = 0;
  std::uint64_t written_at = 0;
};

struct Value {
  StorageId storage;  // may be gone
  Bytes bytes = 0;
  BlockId block;             // where its contents are; none: not resident
  CallId producer;           // none: a Source
  std::uint32_t output = 0;  // which of the producer's outputs
  std::uint32_t depth = 0;   // Calls between it and the farthest Source
  std::uint32_t readers = 0;
  std::uint32_t holds = 0;  // by operators that are running, and by a replay
  bool is_current = false;
  bool is_orphan = false;  // a Source that nobody can read, kept for Calls that do
  bool is_kept = false;    // past, and its memory stays for Calls that read it, until it is evicted
  // A Source only until the operator ends that writes it, in place of what can be made again.
  bool is_being_written = false;
  // Of the running replay: how many planned Calls still read it, the next of them, and whether it is what
  // the replay is for.
  std::uint32_t wanted = 0;
  std::uint64_t wanted_by = 0;  // a Call's sequence
  bool is_target = false;
  bool is_along = false;  // or what it makes besides, for later
  // Of the last walk that came by.
  std::uint64_t seen_by = 0;
  // What must be made again together with it; while it is not resident.
  RegionNodeId region;
  bool is_away = false;  // evicted, and somebody may want it

  // Links.
  EdgeId first_reader;
  ValueId next_output;
  ValueId next_doomed;

  [[nodiscard]] bool is_source() const { return !producer; }
  [[nodiscard]] bool is_resident() const { return static_cast<bool>(block); }
  // Its memory is its own. Of another past Value that can be made again, it is the running replay's.
  [[nodiscard]] bool is_held() const { return is_current || is_kept; }
};

struct Call {
  Token token = 0;
  double cost = 0;             // nanoseconds
  std::uint64_t sequence = 0;  // the order in which Calls were recorded
  std::uint32_t outputs = 0;   // that it makes
  std::uint32_t living_outputs = 0;
  std::uint32_t current_outputs = 0;  // of those
  bool is_hidden = false;
  // Which of the forecast's rounds it was part of, and which Call of the step; round 0: none.
  std::uint32_t round = 0;
  std::uint32_t step_call = 0;
  // Of the running replay.
  std::uint64_t planned_by = 0;  // its number; 0: by none
  std::uint64_t runs_in = 0;
  std::uint32_t runs = 0;

  // Links.
  EdgeId first_input;
  EdgeId last_input;
  ValueId first_output;
  CallId previous_hidden;
  CallId next_hidden;
};

// That a Call reads a Value.
struct Edge {
  ValueId value;
  CallId call;
  bool is_mutated =
      false;  // the Call changes it where it is: the next version is one of its outputs
  std::uint32_t mutated_output = 0;

  // Links.
  EdgeId next_input;
  EdgeId previous_reader;
  EdgeId next_reader;
};

// Told of everything that goes. Must not call back into the graph.
class GraphListener {
 public:
  GraphListener() = default;
  GraphListener(const GraphListener&) = delete;
  GraphListener& operator=(const GraphListener&) = delete;
  virtual ~GraphListener() = default;

  virtual void value_goes(ValueId id, const Value& value) noexcept = 0;
  virtual void call_goes(CallId id, const Call& call) noexcept = 0;
};

class Graph {
 public:
  explicit Graph(GraphListener& listener) : listener_(listener) {}

  // --- growing: each either succeeds or changes nothing ---

  // Makes what follows certain to succeed: this many storages, values and edges, and one Call.
  void reserve(std::size_t storages, std::size_t values, std::size_t edges);
  StorageId add_storage(Token token);
  // The storage's contents from now on. What was current before becomes past.
  ValueId add_source(StorageId storage, Bytes bytes, BlockId block);
  struct Input {
    ValueId value;
    bool is_mutated = false;
    std::uint32_t mutated_output = 0;
  };
  // A Call that makes `outputs` things, none of them recorded yet; it goes with settle() if none is.
  CallId add_call(Token token, double cost, std::uint32_t outputs, std::span<const Input> inputs);
  ValueId add_output(CallId call, std::uint32_t output, StorageId storage, Bytes bytes,
                     BlockId block);
  // A Source turns out to be an output of this Call, which was recorded after it was written.
  void adopt(CallId call_id, std::uint32_t output, ValueId id) noexcept;
  void settle(CallId id) noexcept;
  // The storage's latest version is taken back; `before`, which is past, is current again.
  void restore(StorageId storage, ValueId before) noexcept;

  // --- letting go ---

  // The storage is gone; its contents are past.
  void remove_storage(StorageId id) noexcept;
  void hold(ValueId value) noexcept { ++values_[value].holds; }
  void unhold(ValueId id) noexcept;
  // Makes a Source of it: it forgets the Call that made it.
  void cut(ValueId id) noexcept;

  // --- looking ---

  [[nodiscard]] Table<Storage>& storages() { return storages_; }
  [[nodiscard]] Table<Value>& values() { return values_; }
  [[nodiscard]] Table<Call>& calls() { return calls_; }
  [[nodiscard]] const Table<Storage>& storages() const { return storages_; }
  [[nodiscard]] const Table<Value>& values() const { return values_; }
  [[nodiscard]] const Table<Call>& calls() const { return calls_; }

  // fn(const Edge&) in the order of the Call's arguments.
  template <typename Function>
  void for_each_input(const Call& call, Function&& fn) const {
    for (EdgeId edge = call.first_input; edge; edge = edges_[edge].next_input) fn(edges_[edge]);
  }
  // fn(const Edge&) for every reading; a Call that reads a Value twice comes twice.
  template <typename Function>
  void for_each_reader(const Value& value, Function&& fn) const {
    for (EdgeId edge = value.first_reader; edge; edge = edges_[edge].next_reader) fn(edges_[edge]);
  }
  // fn(ValueId, const Value&) for the outputs that live.
  template <typename Function>
  void for_each_output(const Call& call, Function&& fn) const {
    for (ValueId value = call.first_output; value; value = values_[value].next_output) {
      fn(value, values_[value]);
    }
  }

  // fn(const Value&) for what the Value is made from, and for what is made from it. What very many read
  // is not worth a walk over all of them: the latest readers come first, and some are enough.
  template <typename Function>
  void for_each_neighbour(const Value& value, Function&& fn) const {
    constexpr int kMostReaders = 64;
    if (value.producer) {
      for_each_input(calls_[value.producer], [&](const Edge& edge) { fn(values_[edge.value]); });
    }
    int readers = 0;
    for (EdgeId edge = value.first_reader; edge && readers < kMostReaders; ++readers) {
      for_each_output(calls_[edges_[edge].call], [&](ValueId, const Value& made) { fn(made); });
      edge = edges_[edge].next_reader;
    }
  }

  // Hidden: Calls that have no current output, and live only to make inputs of others again. In the
  // order in which they became so.
  [[nodiscard]] CallId oldest_hidden() const { return first_hidden_; }
  [[nodiscard]] std::size_t hidden_count() const { return hidden_count_; }

  // O(n). Throws InternalError where an invariant does not hold.
  void validate() const;

 private:
  void hide(CallId id) noexcept;
  void unhide(CallId id) noexcept;
  void make_current(StorageId storage_id, ValueId value) noexcept;
  void retire(ValueId id) noexcept;
  void let_go(ValueId id) noexcept;
  void doom_if_unneeded(ValueId id, ValueId& doomed) noexcept;
  void leave_producer(ValueId id, ValueId& doomed) noexcept;
  void erase_call(CallId id, ValueId& doomed) noexcept;
  void erase_doomed(ValueId doomed) noexcept;

  GraphListener& listener_;
  std::uint64_t next_sequence_ = 1;
  Table<Storage> storages_;
  Table<Value> values_;
  Table<Call> calls_;
  Table<Edge> edges_;
  CallId first_hidden_;
  CallId last_hidden_;
  std::size_t hidden_count_ = 0;
};

}  // namespace coop
