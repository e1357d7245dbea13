#pragma once

// PyTorch as the engine sees it: storages that get and lose memory, operators that are run again.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

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
  bool is_as_made(Token storage) noexcept override;
  void attach(Token storage, BlockId block) noexcept override;
  void detach(Token storage) noexcept override;
  void copy(BlockId from, BlockId to, Bytes bytes) override;
  void relocate(const Token* storage, BlockId block, Bytes from, Bytes to, Bytes bytes) override;
  void forget(Token token) noexcept override;

  // Of contents that an operator has just made.
  [[nodiscard]] std::uint64_t sum_of_made(const void* data, std::size_t bytes) const noexcept;
  // What turned out to have been written unseen, since this was last asked: nothing, as a rule.
  struct UnseenWrite {
    std::string made_by;
    std::size_t bytes = 0;
  };
  [[nodiscard]] std::optional<UnseenWrite> take_unseen_write();

  // Of contents, however often each was evicted.
  [[nodiscard]] std::uint64_t bytes_evicted_once() const { return bytes_evicted_once_; }
  [[nodiscard]] std::uint64_t evictions() const { return evictions_; }
  [[nodiscard]] std::uint64_t restorations() const { return restorations_; }
  [[nodiscard]] RecomputedByOperator recomputed() const;

 private:
  torch::jit::Stack run_again(const RecordedCall& call, std::span<const c10::Storage> inputs,
                              std::span<const c10::Storage> fresh);
  void check_contents(const RecordedCall& call, std::span<const BlockId> outputs) const;
  struct Made {
    const RecordedCall* by = nullptr;
    RecordedCall::Contents* contents = nullptr;
    explicit operator bool() const { return by != nullptr; }
  };
  [[nodiscard]] Made made(const StorageRecord& record) const noexcept;
  void note_contents(const StorageRecord& record) noexcept;

  Session& session_;
  Sample sample_;
  std::atomic<std::uint64_t> evictions_ = 0;
  std::atomic<std::uint64_t> bytes_evicted_once_ = 0;
  std::atomic<std::uint64_t> restorations_ = 0;
  mutable std::mutex notes_mutex_;
  RecomputedByOperator recomputed_;
  std::unordered_map<c10::OperatorHandle, Recomputed*>
      recomputed_of_;  // to write no name each time
  std::optional<UnseenWrite> unseen_write_;
  std::atomic<bool> has_unseen_write_ = false;
};

}  // namespace coop::plugin
