#include "sim/trace/trace_builder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace coop::sim {
namespace {

// Numbers have 32 bits; the last one is nobody's.
constexpr std::size_t kMostThings = std::numeric_limits<std::uint32_t>::max();
constexpr const char* kTooLong = "the trace is too long: numbers have 32 bits";
// Of everything that a trace ever allocates: no sum of sizes can overflow.
constexpr Bytes kMostTotalBytes = Bytes{1} << 62U;

std::string describe(StorageNumber storage) {
  return "storage " + std::to_string(index_of(storage));
}

// Room for `more`, growing as push_back does: what follows cannot fail half-way.
template <typename T>
void make_room(std::vector<T>& vector, std::size_t more) {
  const std::size_t needed = vector.size() + more;
  if (needed > kMostThings) throw TraceError(kTooLong);
  if (vector.capacity() < needed) vector.reserve(std::max(needed, 2 * vector.size()));
}

void check_bytes(Bytes bytes, const char* of_what) {
  if (bytes > kMostBytes) {
    throw TraceError(std::string(of_what) + " of " + std::to_string(bytes) +
                     " bytes is larger than any memory (at most " + std::to_string(kMostBytes) +
                     ")");
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

void TraceBuilder::check_alive(StorageNumber storage, const char* doing) const {
  if (index_of(storage) >= states_.size()) {
    throw TraceError(std::string(doing) + " " + describe(storage) + ", which does not exist (yet)");
  }
  if (states_[index_of(storage)] == State::kReleased) {
    throw TraceError(std::string(doing) + " " + describe(storage) + ", which has been released");
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
  make_room(trace_.events_, 1);
  trace_.events_.push_back({kind, subject});
}

StorageNumber TraceBuilder::add_source(Bytes bytes, NameNumber name) {
  const NewStorage storage{.bytes = bytes, .name = name};
  check_new_storages({&storage, 1});
  make_room(trace_.storages_, 1);
  make_room(states_, 1);
  make_room(written_in_, 1);
  const StorageNumber number = next_storage();
  add_event(EventKind::kSource, index_of(number));
  add_storage({.bytes = bytes, .name = name, .is_source = true});
  return number;
}

void TraceBuilder::release(StorageNumber storage) {
  check_alive(storage, "releases");
  if (states_[index_of(storage)] == State::kPinned) {
    throw TraceError("releases " + describe(storage) + ", which is pinned");
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

void TraceBuilder::check_call(const NewCall& call) {
  check_name(call.op);
  check_name(call.module);
  if (call.op == kNoName) throw TraceError("a call needs the name of its operator");
  if (!std::isfinite(call.cost_ns) || call.cost_ns < 0 || call.cost_ns > kMostCostNs) {
    throw TraceError("what a call costs must be between 0 and 1e18 ns");
  }
  check_bytes(call.workspace_bytes, "a workspace");
  for (const StorageNumber storage : call.reads) check_alive(storage, "reads");
  check_new_storages(call.outputs);
  // Each storage remembers the check that last saw it written: one that is written twice is found
  // without a search.
  ++checks_;
  for (const TraceWrite& write : call.writes) {
    check_alive(write.storage, "writes");
    if (std::exchange(written_in_[index_of(write.storage)], checks_) == checks_) {
      throw TraceError("writes " + describe(write.storage) + " twice");
    }
  }
}

void TraceBuilder::reserve_for_call(const NewCall& call) {
  make_room(trace_.reads_, call.reads.size());
  make_room(trace_.writes_, call.writes.size());
  make_room(trace_.storages_, call.outputs.size());
  make_room(states_, call.outputs.size());
  make_room(written_in_, call.outputs.size());
  make_room(trace_.calls_, 1);
}

StorageNumber TraceBuilder::add_call(const NewCall& call) {
  check_call(call);
  reserve_for_call(call);
  const StorageNumber first_output = next_storage();
  add_event(EventKind::kCall, static_cast<std::uint32_t>(trace_.calls_.size()));

  trace_.reads_.insert(trace_.reads_.end(), call.reads.begin(), call.reads.end());
  trace_.writes_.insert(trace_.writes_.end(), call.writes.begin(), call.writes.end());
  for (const NewStorage& output : call.outputs) {
    add_storage({.bytes = output.bytes,
                 .name = output.name,
                 .is_output = true,
                 .is_source = output.is_source});
  }
  trace_.calls_.push_back({.cost_ns = call.cost_ns,
                           .workspace_bytes = call.workspace_bytes,
                           .op = call.op,
                           .module = call.module,
                           .first_output = first_output,
                           .outputs = static_cast<std::uint32_t>(call.outputs.size()),
                           .reads_end = static_cast<std::uint32_t>(trace_.reads_.size()),
                           .writes_end = static_cast<std::uint32_t>(trace_.writes_.size()),
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
  Trace done = std::move(trace_);
  *this = TraceBuilder();
  return done;
}

}  // namespace coop::sim
