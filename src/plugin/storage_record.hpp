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
//
// Note [Storages die on any thread]
//
// A storage can be dropped by a thread that never heard of us, at the moment at which the engine takes or
// gives its memory. Until storage_gone has been called, and has had the lock, it is still there, though it
// may be halfway through its destructor. So: once a storage is ours, we write nothing but two plain words
// of it, the address and the flag that refuses reads; context and deleter stay. All that is done under
// one lock, which storage_gone takes first. Nothing else is done under that lock.
// To take hold of a storage that one has only found takes a weak reference from before it began to die: without one,
// PyTorch deletes it as soon as it has seen that it has the last reference, whoever takes another meanwhile. So
// every record has one.

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
  // By whoever holds the storage.
  StorageRecord(Session& owner, c10::StorageImpl& storage_impl);

  Session& session;
  // For whoever finds the record and not the storage (Note [Storages die on any thread]).
  const c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  c10::StorageImpl*
      impl;  // null: it has let go of our memory (`resize_`, `share_memory_`), or is dead
  std::atomic<StorageId> id;
  BlockId block;  // where its contents are; of a foreign one, what stands for it in the pool
  std::size_t bytes = 0;
  std::atomic<std::uint32_t> users =
      0;                 // operators that run with it; only then may it be gone and still be here
  bool is_ours = false;  // its DataPtr leads here
  bool was_evicted = false;  // and has not come back
  bool is_foreign = false;
  // Its block is of the small area, and has been from the beginning: it is never evicted, and a Source.
  bool is_small = false;
  // Recorded Calls have read it: what they made may depend on its contents.
  std::atomic<bool> feeds_calls = false;
  bool is_filled = false;  // an operator wrote all of it: no byte is what happened to be there
  // Only operators that we see write it. If not, what is made from it cannot be made again for certain.
  std::atomic<bool> is_trusted = true;
  std::atomic<bool> is_exported = false;  // somebody has its address
  // For the report when memory runs out: gradients have been accumulated in it, or for it.
  std::atomic<bool> is_gradient = false;
  std::atomic<bool> is_parameter = false;
  // Of a foreign one. If its memory is another by now, it was exchanged out of our sight.
  const void* address = nullptr;

  // All records of a session with memory of the pool.
  StorageRecord* previous = nullptr;
  StorageRecord* next = nullptr;

  [[nodiscard]] Token token() const { return reinterpret_cast<std::uintptr_t>(this); }
  static StorageRecord* of(Token token) {
    return reinterpret_cast<StorageRecord*>(token);  // NOLINT: our own token
  }
};

// The deleter of a storage's DataPtr: it has died, or has been given other memory. Its context is the record.
void storage_gone(void* context) noexcept;

// What a storage has for memory, as it is at one moment.
struct Memory {
  void* data = nullptr;
  c10::DeleterFnPtr deleter = nullptr;
  StorageRecord* record = nullptr;  // if the memory is ours
};
Memory memory_of(c10::StorageImpl& impl);

// The contents are at this address from now on.
void give_memory(StorageRecord& record, void* data) noexcept;
// The storage has no memory. Whoever asks for its address now gets an exception, never a null pointer.
void take_memory(StorageRecord& record) noexcept;
// The storage is PyTorch's own again, and its record of no more use. False if it has gone away from it already: then the
// memory is the caller's still.
bool leave_with(StorageRecord& record, c10::DataPtr& data) noexcept;

// Its storage, by the time that it is asked for maybe dead, and the record as if an operator used it: until let_go. None,
// and nothing done, if the storage has gone away from it.
std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> use(StorageRecord& record) noexcept;
// An operator is done with it. True if the storage is gone as well: then it is the caller's to release.
bool let_go(StorageRecord& record) noexcept;
// The storage is gone. True if no operator runs with it: then it is the caller's to release.
bool lose_storage(StorageRecord& record) noexcept;

}  // namespace coop::plugin
