#include "sim/trace/pending_requests.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace coop::sim {
namespace {

using Kind = PendingRequest::Kind;
using Request = EngineRequest::Kind;

// Nothing that the program does: it can come in the middle of an operator.
bool is_aside(const PendingRequest& it) {
  return it.kind == Kind::kEvicted || it.kind == Kind::kAgain || it.kind == Kind::kName;
}
bool is_request(const PendingRequest& it, Request kind) {
  return it.kind == Kind::kRequest && it.request.kind == kind;
}

}  // namespace

void PendingRequests::write(TraceBuilder& builder) {
  find_owners();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const PendingRequest& it = requests_[i];
    if (it.kind != Kind::kBegin && it.kind != Kind::kEnd) {
      write(it, builder);
    } else if (it.kind == Kind::kEnd) {
      write_finish(i, builder);
    } else if (const std::size_t end = end_of(i); is_in_one_piece(i, end)) {
      write_call(i, end, builder);
      i = end;
    } else {
      write_begin(i, builder);
    }
  }
  requests_.clear();
  runs_.clear();
}

// --- operators ---

// Memory is for the operator that the thread is in the middle of, the latest of several; but not for what only
// says that something is written besides.
void PendingRequests::find_owners() {
  std::unordered_set<std::uint64_t> side_effects;
  for (const PendingRequest& it : requests_) {
    const bool is_one = it.kind == Kind::kEnd && !it.is_replayable && it.cost == 0;
    if (is_one && it.outputs.empty()) side_effects.insert(it.owner);
  }
  std::vector<const PendingRequest*> open;
  const auto close = [&](std::uint64_t call) {
    std::erase_if(open, [&](const PendingRequest* it) { return it->owner == call; });
  };
  for (PendingRequest& it : requests_) {
    if (it.kind == Kind::kBegin) {
      if (!it.request.has_failed) open.push_back(&it);
    } else if (it.kind == Kind::kEnd) {
      close(it.owner);
    } else if (is_request(it, Request::kAbort)) {
      close(it.request.call);
    } else {
      for (const PendingRequest* call : open) {
        const bool is_better = it.owner == 0 || !side_effects.contains(call->owner);
        if (call->thread == it.thread && is_better) it.owner = call->owner;
      }
    }
  }
}

// As many as there are, if it failed.
std::size_t PendingRequests::end_of(std::size_t begin) const {
  const auto from = requests_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto end = std::find_if(from, requests_.end(), [&](const PendingRequest& it) {
    return it.kind == Kind::kEnd && it.owner == from->owner;
  });
  return static_cast<std::size_t>(end - requests_.begin());
}

// Nothing happens while it runs but that it takes memory, for its outputs and for itself, and gives back what
// is not in its outputs.
bool PendingRequests::is_in_one_piece(std::size_t begin, std::size_t end) const {
  if (end == requests_.size()) return false;
  std::unordered_map<BlockId, Bytes> taken;
  double expected = -1;
  for (std::size_t i = begin + 1; i < end; ++i) {
    const PendingRequest& it = requests_[i];
    if (is_aside(it)) continue;
    if (it.owner != requests_[begin].owner || it.request.has_failed) return false;
    if (is_request(it, Request::kAllocate)) {
      if (expected >= 0 && expected != it.request.cost) return false;
      expected = it.request.cost;
      taken.emplace(it.request.block, it.request.bytes);
    } else if (!is_request(it, Request::kFree) || taken.erase(it.request.block) == 0) {
      return false;
    }
  }
  for (const PendingRequest::Output& output : requests_[end].outputs) {
    const auto found = taken.find(output.block);
    if (found == taken.end() || found->second != output.bytes) return false;
    taken.erase(found);
  }
  return taken.empty();
}

std::vector<MemoryStep> PendingRequests::memory_between(std::size_t begin, std::size_t end) const {
  const std::vector<PendingRequest::Output>& outputs = requests_[end].outputs;
  std::vector<bool> has_memory(outputs.size());
  std::vector<MemoryStep> steps;
  std::unordered_map<BlockId, std::uint64_t> taken;
  std::uint64_t count = 0;
  for (std::size_t i = begin + 1; i < end; ++i) {
    const PendingRequest& it = requests_[i];
    if (it.owner != requests_[begin].owner || it.request.has_failed) continue;
    if (is_request(it, Request::kMakeRoom)) {  // it begins anew
      steps.clear();
      taken.clear();
      count = 0;
    } else if (is_request(it, Request::kAllocate)) {
      const auto output = std::find_if(outputs.begin(), outputs.end(), [&](const auto& each) {
        return each.block == it.request.block;
      });
      if (output != outputs.end()) {
        const auto number = static_cast<std::size_t>(output - outputs.begin());
        has_memory[number] = true;
        steps.push_back({.kind = MemoryStep::Kind::kOutput, .value = number});
      } else {
        taken.emplace(it.request.block, count++);
        steps.push_back(
            {.kind = MemoryStep::Kind::kTake, .value = std::max<Bytes>(it.request.bytes, 1)});
      }
    } else if (is_request(it, Request::kFree)) {
      const auto found = taken.find(it.request.block);
      if (found == taken.end()) continue;
      steps.push_back({.kind = MemoryStep::Kind::kGive, .value = found->second});
      taken.erase(found);
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!has_memory[i]) steps.push_back({.kind = MemoryStep::Kind::kOutput, .value = i});
  }
  return steps;
}

void PendingRequests::write_call(std::size_t begin, std::size_t end, TraceBuilder& builder) {
  double expected = 0;
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (is_aside(requests_[i])) write(requests_[i], builder);
    if (is_request(requests_[i], Request::kAllocate)) expected = requests_[i].request.cost;
  }
  const PendingRequest& it = requests_[end];
  const auto reads = numbers_of(requests_[begin].reads);
  const auto writes = numbers_of(requests_[begin].writes);
  std::vector<NewStorage> outputs;
  for (const auto& output : it.outputs) {
    outputs.push_back({.bytes = output.bytes, .is_source = output.is_source});
  }
  const std::vector<MemoryStep> memory = memory_between(begin, end);
  note_end(it, builder.add_call({.op = builder.name(it.text),
                                 .module = builder.name(it.module),
                                 .cost_ns = it.cost,
                                 .is_replayable = it.is_replayable,
                                 .is_random = it.is_random,
                                 .reads = reads,
                                 .writes = writes,
                                 .outputs = outputs,
                                 .memory = memory,
                                 .expected_ns = expected}));
}

void PendingRequests::write_begin(std::size_t begin, TraceBuilder& builder) {
  const PendingRequest& it = requests_[begin];
  if (it.request.has_failed) builder.note(EventKind::kFails);
  const RunNumber run = builder.begin(numbers_of(it.reads), numbers_of(it.writes));
  if (it.request.has_failed) {
    builder.abort(run);
  } else {
    runs_.emplace(it.owner, Run{.number = run, .begin = begin});
  }
}

void PendingRequests::write_finish(std::size_t end, TraceBuilder& builder) {
  const PendingRequest& it = requests_[end];
  const Run run = runs_.at(it.owner);
  std::vector<NewStorage> outputs;
  for (const auto& output : it.outputs) {
    outputs.push_back(
        {.bytes = output.bytes, .is_source = output.is_source, .block = blocks_.at(output.block)});
  }
  const std::vector<MemoryStep> memory = memory_between(run.begin, end);
  note_end(it, builder.finish_run(run.number, {.op = builder.name(it.text),
                                               .module = builder.name(it.module),
                                               .cost_ns = it.cost,
                                               .is_replayable = it.is_replayable,
                                               .is_random = it.is_random,
                                               .outputs = outputs,
                                               .memory = memory}));
  for (const auto& output : it.outputs) blocks_.erase(output.block);
}

void PendingRequests::note_end(const PendingRequest& end, StorageNumber first) {
  for (std::size_t i = 0; i < end.outputs.size(); ++i) {
    const auto number = index_of(first) + static_cast<std::uint32_t>(i);
    storages_.insert_or_assign(end.outputs[i].storage, StorageNumber{number});
  }
  if (end.is_replayable) calls_.emplace(end.owner, CallNumber{calls_written_});
  ++calls_written_;
}

// --- the rest ---

void PendingRequests::write(const PendingRequest& it, TraceBuilder& builder) {
  switch (it.kind) {
    case Kind::kStep:
      return builder.begin_step();
    case Kind::kAnnotate:
      return builder.annotate(builder.name(it.text));
    case Kind::kName:
      // Otherwise it is gone.
      if (const auto found = storages_.find(it.request.storage); found != storages_.end()) {
        builder.set_name(found->second, builder.name(it.text));
      }
      return;
    case Kind::kEvicted: {
      const auto found = storages_.find(it.request.storage);
      return builder.evicted(found == storages_.end() ? kNoStorage : found->second);
    }
    case Kind::kAgain:
      // One from before the recording has no number.
      if (const auto found = calls_.find(it.request.call); found != calls_.end()) {
        builder.ran_again(found->second);
      }
      return;
    default:
      return write_request(it.request, builder);
  }
}

void PendingRequests::write_request(const EngineRequest& it, TraceBuilder& builder) {
  const auto block = [&] { return blocks_.at(it.block); };
  const auto storage = [&] { return storages_.at(it.storage); };
  const bool is_late = it.kind == Request::kMakeRoom && !runs_.contains(it.call);
  if (it.has_failed && !is_late) builder.note(EventKind::kFails);
  switch (it.kind) {
    case Request::kAllocate: {
      // A program may ask for more than there can be, and not get it.
      const BlockNumber number =
          builder.add_block(std::min(it.bytes, kMostBytes), it.cost, it.lives_long);
      if (it.has_failed) return builder.free(number);
      blocks_.insert_or_assign(it.block, number);
      return;
    }
    case Request::kFree:
      // Otherwise it is a replay's own.
      if (blocks_.contains(it.block)) builder.free(block());
      blocks_.erase(it.block);
      return;
    case Request::kSource:
      storages_.insert_or_assign(it.storage, builder.adopt(it.bytes, block()));
      blocks_.erase(it.block);
      return;
    case Request::kForeignSource: {
      const StorageNumber number = builder.add_foreign(std::min(it.bytes, kMostBytes));
      if (it.has_failed) return builder.release(number);
      storages_.insert_or_assign(it.storage, number);
      return;
    }
    case Request::kMakeRoom:
      if (const auto run = runs_.find(it.call); run != runs_.end()) {
        builder.room(run->second.number, std::min(it.bytes, kMostBytes));
      }
      return;
    case Request::kAbort:
      if (const auto run = runs_.find(it.call); run != runs_.end()) {
        builder.abort(run->second.number);
        runs_.erase(run);
      }
      return;
    case Request::kRelease:
      builder.release(storage());
      storages_.erase(it.storage);
      return;
    case Request::kEndLineage:
      return builder.settle(storage());
    case Request::kKeepInPlace:
      return builder.keep(storage());
    case Request::kExport:
      return builder.export_pointer(storage());
    case Request::kMakeResident:
      return builder.bring(storage());
    case Request::kEvictAll:
      return builder.note(EventKind::kEvictAll);
    case Request::kCompact:
      return builder.note(EventKind::kCompact);
  }
}

std::vector<StorageNumber> PendingRequests::numbers_of(std::span<const StorageId> storages) const {
  std::vector<StorageNumber> numbers;
  for (const StorageId id : storages) numbers.push_back(storages_.at(id));
  return numbers;
}

std::vector<TraceWrite> PendingRequests::numbers_of(std::span<const Write> writes) const {
  std::vector<TraceWrite> numbers;
  for (const Write& write : writes) {
    numbers.push_back({.storage = storages_.at(write.storage), .reads_old = write.reads_old});
  }
  return numbers;
}

}  // namespace coop::sim
