#pragma once

// What we know of one of PyTorch's storages, and how its memory is taken away and given back.
//
//     StorageImpl --DataPtr--+-- data: a block of the pool, or null while it is evicted
//                            +-- context: its StorageRecord        (found in one step)
//                            +-- deleter: storage_gone
//
// TensorImpl and StorageImpl stay what they are; so every view, saved tensor and Python object goes on
// working. A storage from outside the pool (a parameter from before the scope, an array of numpy's)
// keeps its DataPtr, since a foreign deleter must not be wrapped: such records are found by a table.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include "core/engine/engine.hpp"

namespace coop::plugin {

class Session;

struct StorageRecord {
  explicit StorageRecord(Session& owner) : session(owner) {}

  Session& session;
  c10::StorageImpl* impl =
      nullptr;  // null: it has let go of our memory (`resize_`, `share_memory_`)
  StorageId id;
  BlockId block;  // where its contents are; of a foreign one, what stands for it in the pool
  std::size_t bytes = 0;
  std::atomic<std::uint32_t> users =
      0;  // operators that run with it; only then may it be gone and still be here
  bool is_foreign = false;
  // Only operators that we see write it. If not, what is made from it cannot be made again for certain.
  bool is_trusted = true;
  bool is_exported = false;  // somebody has its address
  // Of a foreign one: its place in memory is not used again while this is held.
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> foreign;

  // All records of a session with memory of the pool.
  StorageRecord* previous = nullptr;
  StorageRecord* next = nullptr;

  [[nodiscard]] Token token() const { return reinterpret_cast<std::uintptr_t>(this); }
  static StorageRecord* of(Token token) {
    return reinterpret_cast<StorageRecord*>(token);  // NOLINT: our own token
  }
};

// The deleter of a storage's DataPtr: it has died, or has been given other memory.
void storage_gone(void* record) noexcept;

// The storage's record, if its memory is ours.
inline StorageRecord* record_in(c10::StorageImpl& impl) {
  const c10::DataPtr& data = impl._mutable_data_ptr_no_checks();
  if (data.get_deleter() != &storage_gone) return nullptr;
  return static_cast<StorageRecord*>(data.get_context());
}

// The contents are at this address from now on.
void give_memory(StorageRecord& record, void* data) noexcept;
// The storage has no memory. Whoever asks for its address now gets an exception, never a null pointer.
void take_memory(StorageRecord& record) noexcept;
// The storage is PyTorch's own again.
void leave_with(c10::StorageImpl& impl, c10::DataPtr data) noexcept;

}  // namespace coop::plugin
