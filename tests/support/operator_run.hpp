#pragma once

// One run of one operator of a program, with everything that has to be put right if it fails.

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "support/machine.hpp"
#include "support/program_notes.hpp"

namespace coop::testing {

// The operator itself has failed, as an operator may.
struct OperatorFailed {};

class OperatorRun {
 public:
  OperatorRun(Machine& machine, const Event& event) : m_(machine), event_(event) { ++m_.running; }
  OperatorRun(const OperatorRun&) = delete;
  OperatorRun& operator=(const OperatorRun&) = delete;
  ~OperatorRun() {
    if (!is_done_) give_up();
    --m_.running;
  }

  // Throws what the engine throws; everything is then as if it had failed. inside() is called when
  // it has done its work and has not ended yet.
  template <typename Inside>
  void run(const Inside& inside) {
    if (!resolve()) {
      is_done_ = true;  // one of its names is nobody's: it does not happen
      return;
    }
    note_operator(m_, event_, reads_, writes_);
    begin();
    allocate();
    compute();
    if (event_.fails) throw OperatorFailed();
    inside();
    end();
  }

 private:
  using Slot = Machine::Slot;

  // --- names to storages; what has no memory is left out ---

  bool resolve() {
    for (const Name name : event_.reads) {
      const Slot* slot = m_.find(name);
      if (slot == nullptr) return false;
      if (slot->bytes > 0) reads_.push_back(index_of(*slot));
    }
    for (const Target& target : event_.writes) {
      const Slot* slot = m_.find(target.name);
      if (slot == nullptr) return false;
      if (slot->bytes > 0) writes_.push_back({index_of(*slot), target.reads_old});
    }
    if (event_.resizes != kNobody && m_.find(event_.resizes) == nullptr) return false;
    if (event_.effect != kNobody) {
      const Slot* slot = m_.find(event_.effect);
      if (slot == nullptr) return false;
      if (slot->bytes > 0) touched_ = {index_of(*slot), true};
    }
    describe();
    return true;
  }
  std::size_t index_of(const Slot& slot) const {
    return static_cast<std::size_t>(&slot - m_.slots.data());
  }

  // For the world's records.
  void describe() {
    op_ = {.salt = event_.salt,
           .is_random = event_.is_random,
           .cost = event_.cost,
           .workspace = event_.workspace,
           .has_effect = touched_.has_value(),
           .is_resize = event_.resizes != kNobody};
    for (const WrittenSlot& write : writes_) {
      op_.overwrites.push_back(write.reads_old ? 0 : m_.slots[write.slot].bytes);
    }
    for (const Product& product : event_.makes) {
      if (product.bytes == 0) {
        op_.has_empty_output = true;
        continue;
      }
      const std::size_t output = writes_.size() + op_.makes.size();
      if (!product.is_repeatable) op_.unrepeatable.push_back(output);
      op_.makes.push_back(product.bytes);
    }
  }

  // --- running ---

  void begin() {
    std::vector<StorageId> reads;
    for (const std::size_t slot : reads_) reads.push_back(m_.slots[slot].storage);
    std::vector<Write> writes;
    for (const WrittenSlot& write : writes_) {
      writes.push_back({m_.slots[write.slot].storage, write.reads_old});
    }
    const Exposed engines;
    call_ = m_.engine.begin_call(reads, writes);
    // What it touches besides is an operator of its own to the engine, and one that is not run
    // again.
    if (!touched_) return;
    const Write touch{m_.slots[touched_->slot].storage, true};
    effect_ = m_.engine.begin_call({}, {&touch, 1});
  }

  void allocate() {
    if (event_.workspace > 0) workspace_ = m_.allocate(event_.workspace, 0);
    for (const Product& product : event_.makes) {
      if (product.bytes == 0) continue;
      outputs_.reserve(outputs_.size() + 1);
      const BlockId block = m_.allocate(product.bytes, event_.cost);
      outputs_.push_back({.block = block,
                          .storage = m_.world.new_storage(),
                          .bytes = product.bytes,
                          .is_source = !product.is_repeatable});
    }
  }

  // What it does to memory, and what it should do.
  void compute() {
    random_state_before_ = m_.world.random_state;
    if (event_.is_random) op_.random_state = m_.world.draw();
    m_.expected_random_state = m_.world.random_state;

    for (const std::size_t slot : reads_) read(slot);
    for (const WrittenSlot& write : writes_) {
      if (write.reads_old) read(write.slot);
    }
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      Slot& slot = m_.slots[writes_[i].slot];
      write(writes_[i], HashWorld::result_of(op_, in_memory_, i),
            HashWorld::result_of(op_, expected_, i));
      slot.overwritten_in_a_row = writes_[i].reads_old ? 0 : slot.overwritten_in_a_row + 1;
    }
    if (touched_) {
      const Slot& slot = m_.slots[touched_->slot];
      const Content before = m_.world.read(*m_.world.block_of(slot.token));
      write(*touched_, mix(before, op_.salt), mix(slot.expected, op_.salt));
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      m_.world.write(outputs_[i].block, HashWorld::result_of(op_, in_memory_, writes_.size() + i));
    }
  }
  void read(std::size_t index) {
    const Slot& slot = m_.slots[index];
    const auto block = m_.world.block_of(slot.token);
    ASSERT_TRUE(block) << "an input is not there";
    in_memory_.push_back(m_.world.read(*block));
    expected_.push_back(slot.expected);
  }
  void write(WrittenSlot& write, Content in_memory, Content expected) {
    Slot& slot = m_.slots[write.slot];
    m_.world.write(*m_.world.block_of(slot.token), in_memory);
    write.before = std::exchange(slot.expected, expected);
    ++slot.version;
  }

  void end() {
    if (workspace_) m_.engine.free(std::exchange(workspace_, BlockId{}));
    CallResult result{
        .cost = event_.cost, .is_replayable = event_.is_replayable, .outputs = outputs_};
    if (event_.is_replayable) result.token = m_.world.remember(op_);
    const bool loses_source = changes_a_source();
    std::vector<StorageId> storages;
    try {
      const Exposed engines;
      storages = m_.engine.end_call(*call_, result);
    } catch (...) {
      if (event_.is_replayable) m_.world.forget(result.token);
      throw;
    }
    is_done_ = true;
    end_effect();
    adopt(storages);
    note_products(m_, event_, reads_, storages, loses_source);
  }
  bool changes_a_source() const {
    return std::any_of(call_->writes.begin(), call_->writes.end(), [&](const auto& write) {
      return write.reads_old && m_.engine.graph().values()[write.before].is_source();
    });
  }
  // It is written, whether that can be recorded or not.
  void end_effect() {
    if (!effect_) return;
    try {
      const Exposed engines;
      m_.engine.end_call(*effect_, {.is_replayable = false});
    } catch (const std::bad_alloc&) {
      m_.engine.abort_call(*effect_);
      ++m_.faults_swallowed;
    }
  }

  // What it made is the program's.
  void adopt(const std::vector<StorageId>& storages) {
    std::size_t made = 0;
    for (const Product& product : event_.makes) {
      if (product.bytes == 0) {
        m_.add(product.name, {});
        continue;
      }
      Slot slot{.storage = storages[made],
                .token = outputs_[made].storage,
                .bytes = product.bytes,
                .expected = HashWorld::result_of(op_, expected_, writes_.size() + made)};
      ++made;
      if (event_.resizes == kNobody) {
        m_.add(product.name, std::move(slot));
        continue;
      }
      Slot& resized = *m_.find(event_.resizes);
      if (resized.bytes > 0) m_.drop(resized);
      slot.names = resized.names;
      slot.has_lost_first_name = resized.has_lost_first_name;
      slot.version = resized.version + 1;
      resized = std::move(slot);
    }
  }

  // --- failing ---

  void give_up() {
    for (const NewOutput& output : outputs_) {
      m_.engine.free(output.block);
      m_.world.drop_storage(output.storage);
    }
    if (workspace_) m_.engine.free(workspace_);
    if (m_.options.failure_restores && random_state_before_) {
      m_.world.random_state = *random_state_before_;
      m_.expected_random_state = *random_state_before_;
    }
    const Exposed engines;
    if (effect_) {
      leave(*touched_, effect_->writes[0]);
      m_.engine.abort_call(*effect_);
    }
    if (call_) {
      for (std::size_t i = 0; i < writes_.size(); ++i) leave(writes_[i], call_->writes[i]);
      m_.engine.abort_call(*call_);
    }
  }
  // A storage as it is after a failure. Nobody sees what was done to memory that was fresh.
  void leave(const WrittenSlot& written, const RunningCall::Written& write) {
    const Spared ours;
    Slot& slot = m_.slots[written.slot];
    if (m_.options.failure_restores || write.fresh) {
      if (written.before) slot.expected = *written.before;
    } else {
      slot.expected = 0;
    }
    m_.world.write(*m_.world.block_of(slot.token), slot.expected);
  }

  Machine& m_;
  const Event& event_;
  std::vector<std::size_t> reads_;
  std::vector<WrittenSlot> writes_;
  std::optional<WrittenSlot> touched_;
  HashOp op_;
  std::optional<RunningCall> call_;
  std::optional<RunningCall> effect_;
  BlockId workspace_;
  std::vector<NewOutput> outputs_;
  std::vector<Content> in_memory_;
  std::vector<Content> expected_;
  std::optional<Content> random_state_before_;
  bool is_done_ = false;
};

}  // namespace coop::testing
