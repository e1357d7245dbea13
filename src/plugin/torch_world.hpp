#pragma once

// PyTorch as the engine sees it: storages that get and lose memory, operators that are run again.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "core/engine/engine.hpp"
#include "core/engine/world.hpp"
#include "plugin/checksum.hpp"
#include "plugin/recorded_call.hpp"
#include "plugin/snapshot.hpp"
#include "plugin/storage_record.hpp"

namespace coop::plugin {

class TorchWorld final : public World {
 public:
  // The sample: how much of what comes back is compared with what went.
  TorchWorld(Session& session, Sample sample) : session_(session), sample_(sample) {}
  TorchWorld(const TorchWorld&) = delete;
  TorchWorld& operator=(const TorchWorld&) = delete;
  ~TorchWorld() override = default;

  static Token token_of(RecordedCall& call) { return reinterpret_cast<std::uintptr_t>(&call); }

  void replay(Token token, std::span<const BlockId> inputs, std::span<BlockId> outputs) override;
  void attach(Token storage, BlockId block) noexcept override;
  void detach(Token storage) noexcept override;
  void copy(BlockId from, BlockId to, Bytes bytes) override;
  void relocate(const Token* storage, BlockId block, Bytes from, Bytes to, Bytes bytes) override;
  void forget(Token token) noexcept override;

  // Of contents, however often each was evicted.
  [[nodiscard]] std::uint64_t bytes_evicted_once() const { return bytes_evicted_once_; }
  [[nodiscard]] std::uint64_t evictions() const { return evictions_; }
  [[nodiscard]] std::uint64_t restorations() const { return restorations_; }
  [[nodiscard]] RecomputedByOperator recomputed() const;

 private:
  torch::jit::Stack run_again(const RecordedCall& call, std::span<const c10::Storage> inputs,
                              std::span<const c10::Storage> fresh);
  void check_contents(const RecordedCall& call, std::span<const BlockId> outputs) const;
  void note_contents(const StorageRecord& record) noexcept;

  Session& session_;
  Sample sample_;
  std::atomic<std::uint64_t> evictions_ = 0;
  std::atomic<std::uint64_t> bytes_evicted_once_ = 0;
  std::atomic<std::uint64_t> restorations_ = 0;
  mutable std::mutex recomputed_mutex_;
  RecomputedByOperator recomputed_;
};

}  // namespace coop::plugin
