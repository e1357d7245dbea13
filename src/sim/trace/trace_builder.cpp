#include "sim/trace/trace_builder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/trace/trace_limits.hpp"

namespace coop::sim {
namespace {

bool can_fail(EventKind kind) {
  switch (kind) {
    case EventKind::kForeign:
    case EventKind::kBlock:
    case EventKind::kBegin:
    case EventKind::kRoom:
    case EventKind::kKeep:
    case EventKind::kSettle:
    case EventKind::kBring:
    case EventKind::kExport:
      return true;
    default:
      return false;
  }
}

}  // namespace

// --- names ---

NameNumber TraceBuilder::name(std::string_view text) {
  if (text.empty()) return kNoName;
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  const bool is_printable = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (!is_printable) throw TraceError("a name has a line break or another control character in it");
  if (trace_.names_.size() >= kMostThings) throw TraceError(kTooLong);
  const NameNumber number = next_name();
  trace_.names_.emplace_back(text);
  numbers_.emplace(trace_.names_.back(), number);
  return number;
}

NameNumber TraceBuilder::next_name() const {
  return NameNumber{static_cast<std::uint32_t>(trace_.names_.size())};
}

void TraceBuilder::check_name(NameNumber name) const {
  if (index_of(name) >= trace_.names_.size()) {
    throw TraceError("there is no name " + std::to_string(index_of(name)));
  }
}

// --- storages ---

StorageNumber TraceBuilder::next_storage() const {
  return StorageNumber{static_cast<std::uint32_t>(trace_.storages_.size())};
}

Bytes TraceBuilder::bytes_of(StorageNumber storage) const {
  if (index_of(storage) >= states_.size()) throw TraceError("there is no " + describe(storage));
  return trace_.storage(storage).bytes;
}

void TraceBuilder::set_name(StorageNumber storage, NameNumber name) {
  check_alive(storage, "name");
  check_name(name);
  trace_.storages_[index_of(storage)].name = name;
}

void TraceBuilder::check_alive(StorageNumber storage, const char* doing) const {
  if (index_of(storage) >= states_.size()) {
    throw TraceError(std::string(doing) + " " + describe(storage) + ", which does not exist (yet)");
  }
  if (states_[index_of(storage)] == State::kReleased) {
    throw TraceError(std::string(doing) + " " + describe(storage) + ", which has been released");
  }
  if (states_[index_of(storage)] == State::kFailed) {
    throw TraceError(std::string(doing) + " " + describe(storage) + ", which could not be had");
  }
}

void TraceBuilder::check_new_storages(std::span<const NewStorage> storages) const {
  Bytes total = total_bytes_;
  for (const NewStorage& storage : storages) {
    check_bytes(storage.bytes, "a storage");
    check_name(storage.name);
    total += storage.bytes;
    if (total > kMostTotalBytes)
      throw TraceError("all storages together are larger than 2^62 bytes");
  }
}

// Room for it has been made.
void TraceBuilder::add_storage(const TraceStorage& storage) {
  trace_.storages_.push_back(storage);
  states_.push_back(State::kAlive);
  written_in_.push_back(0);
  total_bytes_ += storage.bytes;
}

void TraceBuilder::add_event(EventKind kind, std::uint32_t subject) {
  if (is_failing_ && !can_fail(kind)) {
    throw TraceError("what comes after 'fails' must be something that can");
  }
  make_room(trace_.events_, 1);
  trace_.events_.push_back({kind, subject});
  is_failing_ = kind == EventKind::kFails;
}

StorageNumber TraceBuilder::add_source(Bytes bytes, NameNumber name) {
  return add_from_outside(EventKind::kSource, bytes, name);
}

StorageNumber TraceBuilder::add_from_outside(EventKind kind, Bytes bytes, NameNumber name) {
  const NewStorage storage{.bytes = bytes, .name = name};
  check_new_storages({&storage, 1});
  make_room(trace_.storages_, 1);
  make_room(states_, 1);
  make_room(written_in_, 1);
  const StorageNumber number = next_storage();
  const bool has_failed = is_failing_;
  add_event(kind, index_of(number));
  add_storage({.bytes = bytes, .name = name, .is_source = true});
  if (has_failed) states_.back() = State::kFailed;
  return number;
}

void TraceBuilder::release(StorageNumber storage) {
  const bool has_failed =
      index_of(storage) < states_.size() && states_[index_of(storage)] == State::kFailed;
  if (!has_failed) check_alive(storage, "releases");
  if (states_[index_of(storage)] == State::kPinned) {
    throw TraceError("releases " + describe(storage) + ", which is pinned");
  }
  if (index_of(storage) < users_.size() && users_[index_of(storage)] > 0) {
    throw TraceError("releases " + describe(storage) + ", which a run uses that has begun");
  }
  add_event(EventKind::kRelease, index_of(storage));
  states_[index_of(storage)] = State::kReleased;
}

void TraceBuilder::export_pointer(StorageNumber storage) {
  check_alive(storage, "exports");
  add_event(EventKind::kExport, index_of(storage));
}

void TraceBuilder::pin(StorageNumber storage) {
  check_alive(storage, "pins");
  if (states_[index_of(storage)] == State::kPinned) {
    throw TraceError("pins " + describe(storage) + ", which is pinned already");
  }
  add_event(EventKind::kPin, index_of(storage));
  states_[index_of(storage)] = State::kPinned;
  ++pinned_;
}

void TraceBuilder::unpin(StorageNumber storage) {
  check_alive(storage, "unpins");
  if (states_[index_of(storage)] != State::kPinned) {
    throw TraceError("unpins " + describe(storage) + ", which is not pinned");
  }
  add_event(EventKind::kUnpin, index_of(storage));
  states_[index_of(storage)] = State::kAlive;
  --pinned_;
}

// --- calls ---

void TraceBuilder::check_cost(double cost_ns) {
  if (!std::isfinite(cost_ns) || cost_ns < 0 || cost_ns > kMostCostNs) {
    throw TraceError("what a call costs must be between 0 and 1e18 ns");
  }
}

void TraceBuilder::check_uses(std::span<const StorageNumber> reads,
                              std::span<const TraceWrite> writes) {
  for (const StorageNumber storage : reads) check_alive(storage, "reads");
  // Each storage remembers the check that last saw it written: one that is written twice is found
  // without a search.
  ++checks_;
  for (const TraceWrite& write : writes) {
    check_alive(write.storage, "writes");
    if (std::exchange(written_in_[index_of(write.storage)], checks_) == checks_) {
      throw TraceError("writes " + describe(write.storage) + " twice");
    }
  }
}

void TraceBuilder::check_call(const NewCall& call) {
  check_name(call.op);
  check_name(call.module);
  if (call.op == kNoName) throw TraceError("a call needs the name of its operator");
  check_cost(call.cost_ns);
  check_cost(call.expected_ns);
  check_bytes(call.workspace_bytes, "a workspace");
  check_new_storages(call.outputs);
}

void TraceBuilder::reserve_for_call(const NewCall& call) {
  make_room(trace_.reads_, call.reads.size());
  make_room(trace_.writes_, call.writes.size());
  make_room(trace_.memory_, call.memory.size());
  make_room(trace_.storages_, call.outputs.size());
  make_room(states_, call.outputs.size());
  make_room(written_in_, call.outputs.size());
  make_room(trace_.calls_, 1);
}

StorageNumber TraceBuilder::add_call(const NewCall& call) {
  check_call(call);
  check_uses(call.reads, call.writes);
  const bool is_plain = call.memory.empty();
  if (is_plain && call.expected_ns != 0) {
    throw TraceError("what a call was expected to cost says nothing without its memory");
  }
  const Bytes workspace = is_plain ? call.workspace_bytes : check_memory(call, Leftovers::kNo);
  const StorageNumber first_output = append_call(call, EventKind::kCall, kNoRun, workspace);
  if (!is_plain) needs_version_2();
  return first_output;
}

StorageNumber TraceBuilder::append_call(const NewCall& call, EventKind kind, RunNumber run,
                                        Bytes workspace) {
  reserve_for_call(call);
  const StorageNumber first_output = next_storage();
  add_event(kind, static_cast<std::uint32_t>(trace_.calls_.size()));

  trace_.reads_.insert(trace_.reads_.end(), call.reads.begin(), call.reads.end());
  trace_.writes_.insert(trace_.writes_.end(), call.writes.begin(), call.writes.end());
  trace_.memory_.insert(trace_.memory_.end(), call.memory.begin(), call.memory.end());
  for (const NewStorage& output : call.outputs) {
    add_storage({.bytes = output.bytes,
                 .name = output.name,
                 .is_output = true,
                 .is_source = output.is_source,
                 .block = output.block});
  }
  trace_.calls_.push_back({.cost_ns = call.cost_ns,
                           .expected_ns = call.expected_ns,
                           .workspace_bytes = workspace,
                           .op = call.op,
                           .module = call.module,
                           .first_output = first_output,
                           .outputs = static_cast<std::uint32_t>(call.outputs.size()),
                           .reads_end = static_cast<std::uint32_t>(trace_.reads_.size()),
                           .writes_end = static_cast<std::uint32_t>(trace_.writes_.size()),
                           .memory_end = static_cast<std::uint32_t>(trace_.memory_.size()),
                           .run = run,
                           .is_replayable = call.is_replayable,
                           .is_random = call.is_random});
  return first_output;
}

// --- the rest ---

void TraceBuilder::begin_step() {
  add_event(EventKind::kStep, 0);
  ++trace_.step_marks_;
}

void TraceBuilder::annotate(NameNumber text) {
  check_name(text);
  if (text == kNoName) throw TraceError("an annotation needs a text");
  add_event(EventKind::kAnnotate, index_of(text));
}

Trace TraceBuilder::finish() {
  if (pinned_ > 0)
    throw TraceError("at the end " + std::to_string(pinned_) + " storages are pinned");
  if (open_runs_ > 0) {
    throw TraceError("at the end " + std::to_string(open_runs_) + " runs have not ended");
  }
  if (is_failing_) throw TraceError("after 'fails' nothing comes");
  Trace done = std::move(trace_);
  *this = TraceBuilder();
  return done;
}

}  // namespace coop::sim
