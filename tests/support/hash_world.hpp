#pragma once

// A world in which contents are numbers that tell how they came about: an operator's result is a hash of
// what it read. A replay of the wrong version, a write that got lost, memory used by two: all show as a
// different number. Memory is real: every grain of a block holds its contents, at its address.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/engine.hpp"

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
  std::vector<Bytes>
      overwrites;            // sizes of outputs that overwrite a storage without reading it, else 0
  std::vector<Bytes> makes;  // sizes of new outputs
  double cost = 0;
};

class HashWorld final : public World {
 public:
  explicit HashWorld(Bytes pool_bytes) : memory_(pool_bytes / kGrainBytes) {}

  void set_engine(Engine& engine, Pool& pool) {
    engine_ = &engine;
    pool_ = &pool;
  }

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

  Content random_state = 1;

  // --- World ---

  void replay(Token call, std::span<const BlockId> inputs, std::span<BlockId> outputs) override {
    const HashOp& op = ops_.at(call);
    std::vector<Content> read_contents;
    for (const BlockId input : inputs) read_contents.push_back(read(input));
    std::vector<BlockId> fresh;
    try {
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Bytes bytes =
            i < op.overwrites.size() ? op.overwrites[i] : op.makes[i - op.overwrites.size()];
        if (bytes == 0) continue;  // changed where it is
        fresh.push_back(engine_->allocate(bytes, op.cost));
        outputs[i] = fresh.back();
      }
    } catch (...) {
      for (const BlockId block : fresh) engine_->free(block);
      throw;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      write(outputs[i], result_of(op, read_contents, i));
    ++replays;
  }
  void attach(Token storage, BlockId block) noexcept override { attached_[storage] = block; }
  void detach(Token storage) noexcept override { attached_[storage] = std::nullopt; }
  void copy(BlockId from, BlockId to, Bytes /*bytes*/) override { write(to, read(from)); }
  void relocate(const Token* /*storage*/, BlockId block, Bytes from, Bytes to,
                Bytes bytes) override {
    const Content content = read(block);
    EXPECT_LT(to, from);
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
  Engine* engine_ = nullptr;
  Pool* pool_ = nullptr;
  std::vector<Content> memory_;
  std::map<std::size_t, Content> contents_;  // by first grain
  std::unordered_map<Token, HashOp> ops_;
  std::unordered_map<Token, std::optional<BlockId>> attached_;
  Token last_token_ = 0;
};

}  // namespace coop::testing
