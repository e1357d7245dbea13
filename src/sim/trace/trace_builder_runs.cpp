// What recordings have besides: memory that is no storage's, operators during which something else happens.
#include <algorithm>
#include <utility>

#include "sim/trace/trace_builder.hpp"
#include "sim/trace/trace_limits.hpp"

namespace coop::sim {
namespace {

std::string describe(BlockNumber block) { return "block " + std::to_string(index_of(block)); }
std::string describe(RunNumber run) { return "run " + std::to_string(index_of(run)); }

}  // namespace

void TraceBuilder::set_recorded_with(const RecordedWith& with) {
  if (!trace_.events_.empty() || trace_.recorded_with_) {
    throw TraceError("what it was recorded with comes first, and once");
  }
  check_bytes(with.budget, "a budget");
  check_bytes(with.small_limit, "a limit");
  check_cost(with.most_slowdown);
  check_name(with.policy);
  if (with.policy == kNoName) throw TraceError("a recording needs the name of its policy");
  trace_.recorded_with_ = with;
  needs_version_2();
}

// --- memory that is no storage's ---

BlockNumber TraceBuilder::next_block() const {
  return BlockNumber{static_cast<std::uint32_t>(trace_.blocks_.size())};
}

BlockNumber TraceBuilder::add_block(Bytes bytes, double cost_ns, bool lives_long) {
  const NewStorage as_storage{.bytes = bytes};
  check_new_storages({&as_storage, 1});
  check_cost(cost_ns);
  make_room(trace_.blocks_, 1);
  make_room(block_states_, 1);
  const BlockNumber number = next_block();
  const bool has_failed = is_failing_;
  add_event(EventKind::kBlock, index_of(number));
  trace_.blocks_.push_back({.bytes = bytes, .cost_ns = cost_ns, .lives_long = lives_long});
  block_states_.push_back(has_failed ? BlockState::kFailed : BlockState::kHeld);
  total_bytes_ += bytes;
  needs_version_2();
  return number;
}

void TraceBuilder::check_block(BlockNumber block, const char* doing) const {
  if (index_of(block) >= block_states_.size()) {
    throw TraceError(std::string(doing) + " " + describe(block) + ", which does not exist (yet)");
  }
  if (block_states_[index_of(block)] == BlockState::kGone) {
    throw TraceError(std::string(doing) + " " + describe(block) +
                     ", which was freed or is a storage's");
  }
}

void TraceBuilder::check_there(BlockNumber block, const char* doing) const {
  check_block(block, doing);
  if (block_states_[index_of(block)] == BlockState::kFailed) {
    throw TraceError(std::string(doing) + " " + describe(block) + ", which could not be had");
  }
}

void TraceBuilder::free(BlockNumber block) {
  check_block(block, "frees");
  add_event(EventKind::kFree, index_of(block));
  block_states_[index_of(block)] = BlockState::kGone;
}

StorageNumber TraceBuilder::adopt(Bytes bytes, BlockNumber block, NameNumber name) {
  check_there(block, "adopts");
  const StorageNumber number = add_from_outside(EventKind::kAdopt, bytes, name);
  trace_.storages_.back().block = block;
  trace_.blocks_[index_of(block)].adopted_by = number;
  block_states_[index_of(block)] = BlockState::kGone;
  return number;
}

StorageNumber TraceBuilder::add_foreign(Bytes bytes, NameNumber name) {
  const StorageNumber number = add_from_outside(EventKind::kForeign, bytes, name);
  needs_version_2();
  return number;
}

// --- runs ---

RunNumber TraceBuilder::next_run() const {
  return RunNumber{static_cast<std::uint32_t>(trace_.runs_.size())};
}

RunNumber TraceBuilder::begin(std::span<const StorageNumber> reads,
                              std::span<const TraceWrite> writes) {
  check_uses(reads, writes);
  if (users_.size() < states_.size()) users_.resize(states_.size());
  make_room(trace_.runs_, 1);
  make_room(run_states_, 1);
  Trace::RunRecord record{.reads = {reads.begin(), reads.end()},
                          .writes = {writes.begin(), writes.end()}};
  const RunNumber number = next_run();
  const bool has_failed = is_failing_;
  add_event(EventKind::kBegin, index_of(number));
  trace_.runs_.push_back(std::move(record));
  run_states_.push_back(has_failed ? RunState::kFailed : RunState::kOpen);
  ++open_runs_;
  use(number, 1);
  needs_version_2();
  return number;
}

void TraceBuilder::use(RunNumber run, int more) {
  const Trace::RunRecord& record = trace_.runs_[index_of(run)];
  const auto add = [&](StorageNumber storage) {
    users_[index_of(storage)] += static_cast<std::uint32_t>(more);
  };
  for (const StorageNumber storage : record.reads) add(storage);
  for (const TraceWrite& write : record.writes) add(write.storage);
}

void TraceBuilder::check_run(RunNumber run) const {
  if (index_of(run) >= run_states_.size()) {
    throw TraceError("ends " + describe(run) + ", which does not exist (yet)");
  }
  if (run_states_[index_of(run)] == RunState::kEnded) {
    throw TraceError("ends " + describe(run) + ", which has ended");
  }
}

BlockNumber TraceBuilder::room(RunNumber run, Bytes bytes) {
  const bool is_open =
      index_of(run) < run_states_.size() && run_states_[index_of(run)] == RunState::kOpen;
  if (!is_open) throw TraceError("makes room for " + describe(run) + ", which does not run");
  if (!trace_.runs_[index_of(run)].writes.empty()) {
    throw TraceError("makes room for " + describe(run) + ", which writes and cannot begin anew");
  }
  const NewStorage as_storage{.bytes = bytes};
  check_new_storages({&as_storage, 1});
  make_room(trace_.blocks_, 1);
  make_room(block_states_, 1);
  const BlockNumber number = next_block();
  add_event(EventKind::kRoom, index_of(number));
  trace_.blocks_.push_back({.bytes = bytes, .room_for = run});
  block_states_.push_back(BlockState::kGone);
  return number;
}

void TraceBuilder::end_run(RunNumber run) {
  use(run, -1);
  run_states_[index_of(run)] = RunState::kEnded;
  --open_runs_;
}

StorageNumber TraceBuilder::finish_run(RunNumber run, const NewCall& call) {
  check_run(run);
  if (run_states_[index_of(run)] == RunState::kFailed) {
    throw TraceError("finishes " + describe(run) + ", which could not begin");
  }
  NewCall whole = call;
  whole.reads = trace_.runs_[index_of(run)].reads;
  whole.writes = trace_.runs_[index_of(run)].writes;
  check_call(whole);
  std::vector<BlockNumber> blocks;
  for (const NewStorage& output : call.outputs) {
    check_there(output.block, "makes a storage of");
    blocks.push_back(output.block);
  }
  std::sort(blocks.begin(), blocks.end());
  const auto twice = std::adjacent_find(blocks.begin(), blocks.end());
  if (twice != blocks.end()) throw TraceError("two storages in " + describe(*twice));
  static_cast<void>(check_memory(call, Leftovers::kYes));
  const StorageNumber first_output = append_call(whole, EventKind::kFinish, run, 0);
  for (const NewStorage& output : call.outputs) {
    block_states_[index_of(output.block)] = BlockState::kGone;
  }
  end_run(run);
  return first_output;
}

void TraceBuilder::abort(RunNumber run) {
  check_run(run);
  add_event(EventKind::kAbort, index_of(run));
  end_run(run);
}

// Every output is taken once, and what is given back has been taken and is still there.
Bytes TraceBuilder::check_memory(const NewCall& call, Leftovers leftovers) {
  std::vector<bool> has_output(call.outputs.size());
  std::vector<Bytes> taken;  // 0: given back
  Bytes held = 0;
  Bytes of_outputs = 0;
  Bytes most_held = 0;
  std::size_t left = 0;
  for (const MemoryStep& step : call.memory) {
    const auto index = static_cast<std::size_t>(step.value);
    switch (step.kind) {
      case MemoryStep::Kind::kOutput:
        if (index >= has_output.size() || has_output[index]) {
          throw TraceError("memory for an output that is not there, or has some: " +
                           std::to_string(step.value));
        }
        has_output[index] = true;
        held += call.outputs[index].bytes;
        of_outputs += call.outputs[index].bytes;
        break;
      case MemoryStep::Kind::kTake:
        check_bytes(step.value, "a piece of memory");
        if (step.value == 0) throw TraceError("a piece of memory of no bytes");
        taken.push_back(step.value);
        held += step.value;
        ++left;
        break;
      case MemoryStep::Kind::kGive:
        if (index >= taken.size() || taken[index] == 0) {
          throw TraceError("gives memory back that it does not have: " +
                           std::to_string(step.value));
        }
        held -= std::exchange(taken[index], 0);
        --left;
        break;
    }
    if (held > kMostTotalBytes) throw TraceError("a call takes more than 2^62 bytes");
    most_held = std::max(most_held, held);
  }
  if (std::count(has_output.begin(), has_output.end(), false) > 0) {
    throw TraceError("an output without memory");
  }
  if (leftovers == Leftovers::kNo && left > 0) {
    throw TraceError("does not give back all memory that it takes");
  }
  return most_held - of_outputs;
}

// --- the rest ---

void TraceBuilder::keep(StorageNumber storage) {
  check_alive(storage, "keeps");
  add_event(EventKind::kKeep, index_of(storage));
  needs_version_2();
}

void TraceBuilder::settle(StorageNumber storage) {
  check_alive(storage, "settles");
  add_event(EventKind::kSettle, index_of(storage));
  needs_version_2();
}

void TraceBuilder::bring(StorageNumber storage) {
  check_alive(storage, "brings back");
  add_event(EventKind::kBring, index_of(storage));
  needs_version_2();
}

void TraceBuilder::note(EventKind kind) {
  add_event(kind, 0);
  needs_version_2();
}

void TraceBuilder::evicted(StorageNumber storage) {
  if (storage != kNoStorage) check_alive(storage, "evicts");
  add_event(EventKind::kEvicted, index_of(storage));
  needs_version_2();
}

void TraceBuilder::ran_again(CallNumber call) {
  if (index_of(call) >= trace_.calls_.size()) {
    throw TraceError("runs call " + std::to_string(index_of(call)) +
                     " again, which does not exist (yet)");
  }
  add_event(EventKind::kAgain, index_of(call));
  needs_version_2();
}

}  // namespace coop::sim
