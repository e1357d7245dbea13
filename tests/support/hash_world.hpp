#pragma once

// A world in which contents are numbers that tell how they came about: an operator's result is a hash of
// what it read. A replay of the wrong version, a write that got lost, memory used by two: all show as a
// different number. Memory is real: every grain of a block holds its contents, at its address.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "support/failing_new.hpp"
#include "support/fault_plan.hpp"

namespace coop::testing {

using Content = std::uint64_t;

inline Content mix(Content a, Content b) {
  Content z = a * 0x9E3779B97F4A7C15 + b + 0x7F4A7C15;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EB;
  return z ^ (z >> 31U);
}

// One run of an operator, as the world remembers it for a replay.
struct HashOp {
  Content salt = 0;  // which operator, with which attributes
  bool is_random = false;
  Content random_state = 0;  // at the time of the first run
  // Sizes of outputs that overwrite a storage without reading it, else 0.
  std::vector<Bytes> overwrites;
  std::vector<Bytes> makes;  // sizes of new outputs
  double cost = 0;
  Bytes workspace = 0;                    // memory that it needs only while it runs
  std::vector<std::size_t> unrepeatable;  // outputs that come out differently each time
  // For the records only.
  bool has_effect = false;        // on something that a replay leaves alone
  bool has_empty_output = false;  // of zero bytes, which has no memory
  bool is_resize = false;
};

// Told of every replay before it happens.
class ReplayObserver {
 public:
  ReplayObserver() = default;
  ReplayObserver(const ReplayObserver&) = delete;
  ReplayObserver& operator=(const ReplayObserver&) = delete;
  virtual ~ReplayObserver() = default;
  virtual void replay_begins(Token call, const HashOp& op) = 0;
};

class HashWorld final : public World {
 public:
  explicit HashWorld(Bytes pool_bytes) : memory_(pool_bytes / kGrainBytes) {}

  void set_engine(Engine& engine, Pool& pool) {
    engine_ = &engine;
    pool_ = &pool;
  }
  void set_observer(ReplayObserver& observer) { observer_ = &observer; }
  void set_faults(FaultPlan& faults) { faults_ = &faults; }

  // --- contents ---

  void write(BlockId block, Content content) {
    const BlockInfo info = pool_->info(block);
    const auto begin = static_cast<std::size_t>(info.offset / kGrainBytes);
    for (std::size_t i = 0; i < info.bytes / kGrainBytes; ++i) memory_[begin + i] = mix(content, i);
    contents_[begin] = content;
  }

  Content read(BlockId block) const {
    const BlockInfo info = pool_->info(block);
    const auto begin = static_cast<std::size_t>(info.offset / kGrainBytes);
    const auto found = contents_.find(begin);
    if (found == contents_.end()) {
      ADD_FAILURE() << "memory was read that nobody has written";
      return 0;
    }
    for (std::size_t i = 0; i < info.bytes / kGrainBytes; ++i) {
      EXPECT_EQ(memory_[begin + i], mix(found->second, i)) << "memory was used by two";
    }
    return found->second;
  }

  // Somebody who has the address, and tells nobody.
  void write_unseen(Token storage, Content content) {
    write(*attached_.at(storage), content);
    written_unseen_.insert(storage);
  }

  // What output number `output` of an operator is, given what it read.
  static Content result_of(const HashOp& op, std::span<const Content> inputs, std::size_t output) {
    Content content = mix(op.salt, output);
    if (op.is_random) content = mix(content, op.random_state);
    for (const Content input : inputs) content = mix(content, input);
    return content;
  }

  // --- the program's side ---

  Token remember(HashOp op) {
    ops_.emplace(++last_token_, std::move(op));
    return last_token_;
  }
  Token new_storage() {
    attached_.emplace(++last_token_, std::nullopt);
    return last_token_;
  }
  void drop_storage(Token storage) { attached_.erase(storage); }
  [[nodiscard]] std::optional<BlockId> block_of(Token storage) const {
    return attached_.at(storage);
  }
  [[nodiscard]] std::size_t remembered() const { return ops_.size(); }
  [[nodiscard]] std::size_t storages() const { return attached_.size(); }

  // The generator of random numbers: operators draw from it.
  Content draw() { return std::exchange(random_state, mix(random_state, 1)); }
  Content random_state = 1;

  // --- World ---

  void replay(Token call, std::span<const BlockId> inputs, std::span<BlockId> outputs) override {
    const Spared ours;
    const HashOp& op = ops_.at(call);
    if (observer_ != nullptr) observer_->replay_begins(call, op);
    faults_->pass(FaultPlace::kReplayBegins, *pool_);
    const RandomStateOf then(*this, op);
    std::vector<Content> read_contents;
    for (const BlockId input : inputs) read_contents.push_back(read(input));
    Allocated allocated(*this);
    const std::size_t written = op.overwrites.size();
    for (std::size_t i = 0; i < written; ++i) {
      if (op.overwrites[i] > 0) outputs[i] = allocated.add(op.overwrites[i], op.cost);
    }  // the others are changed where they are
    const BlockId workspace = op.workspace > 0 ? allocated.add(op.workspace, op.cost) : BlockId{};
    for (std::size_t i = written; i < outputs.size(); ++i) {
      outputs[i] = allocated.add(op.makes[i - written], op.cost);
    }
    if (op.is_random) {
      EXPECT_EQ(draw(), op.random_state);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      write(outputs[i], result_of(op, read_contents, i));
    for (const std::size_t i : op.unrepeatable) write(outputs[i], ++noise_);
    faults_->pass(FaultPlace::kReplayEnds, *pool_);
    allocated.hand_over();
    if (workspace) engine_->free(workspace);
    ++replays;
  }
  bool is_as_made(Token storage) noexcept override { return !written_unseen_.contains(storage); }
  void attach(Token storage, BlockId block) noexcept override { attached_[storage] = block; }
  void detach(Token storage) noexcept override { attached_[storage] = std::nullopt; }
  void copy(BlockId from, BlockId to, Bytes /*bytes*/) override {
    const Spared ours;
    write(to, read(from));
    faults_->pass(FaultPlace::kCopy, *pool_);
  }
  void relocate(const Token* /*storage*/, BlockId block, Bytes from, Bytes to,
                Bytes bytes) override {
    const Spared ours;
    faults_->pass(FaultPlace::kRelocate, *pool_);
    const Content content = read(block);
    EXPECT_TRUE(to < from || to >= from + bytes);
    contents_.erase(static_cast<std::size_t>(from / kGrainBytes));
    const auto begin = static_cast<std::size_t>(to / kGrainBytes);
    for (std::size_t i = 0; i < bytes / kGrainBytes; ++i) memory_[begin + i] = mix(content, i);
    contents_[begin] = content;
  }
  void forget(Token call) noexcept override {
    EXPECT_EQ(ops_.erase(call), 1U) << "a call was forgotten twice";
  }

  std::uint64_t replays = 0;

 private:
  // The generator's state of then while an operator runs again; afterwards that of now is back.
  class RandomStateOf {
   public:
    RandomStateOf(HashWorld& world, const HashOp& op) : world_(world), now_(world.random_state) {
      if (op.is_random) world.random_state = op.random_state;
    }
    RandomStateOf(const RandomStateOf&) = delete;
    RandomStateOf& operator=(const RandomStateOf&) = delete;
    ~RandomStateOf() { world_.random_state = now_; }

   private:
    HashWorld& world_;
    Content now_;
  };

  // Blocks of a replay until they are handed over.
  class Allocated {
   public:
    explicit Allocated(HashWorld& world) : world_(world) {}
    Allocated(const Allocated&) = delete;
    Allocated& operator=(const Allocated&) = delete;
    ~Allocated() {
      // The last first, as a function does that is left.
      std::for_each(blocks_.rbegin(), blocks_.rend(),
                    [&](BlockId block) { world_.engine_->free(block); });
    }
    BlockId add(Bytes bytes, double cost) {
      blocks_.reserve(blocks_.size() + 1);
      world_.faults_->pass(FaultPlace::kReplayAllocates, *world_.pool_);
      const Exposed engines;
      blocks_.push_back(world_.engine_->allocate(bytes, cost));
      return blocks_.back();
    }
    void hand_over() { blocks_.clear(); }

   private:
    HashWorld& world_;
    std::vector<BlockId> blocks_;
  };

  Engine* engine_ = nullptr;
  Pool* pool_ = nullptr;
  ReplayObserver* observer_ = nullptr;
  FaultPlan no_faults_;
  FaultPlan* faults_ = &no_faults_;
  Content noise_ = 0;
  std::vector<Content> memory_;
  std::map<std::size_t, Content> contents_;  // by first grain
  std::unordered_map<Token, HashOp> ops_;
  std::unordered_map<Token, std::optional<BlockId>> attached_;
  std::unordered_set<Token> written_unseen_;
  Token last_token_ = 0;
};

}  // namespace coop::testing
