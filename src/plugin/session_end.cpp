// What becomes of the storages that outlive the scope.
#include <algorithm>
#include <exception>
#include <utility>

#include "plugin/last_out_of_memory.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {

// Note [The end of a scope]
//
// Nobody sees what is done with storages outside. So everything that lives on is made a Source, the oldest
// first, since others are made from those. It stays in the pool, which lives as long as anything in it
// does; where the pool cannot hold all of it, those that have come back go out into ordinary memory. What
// stays is pushed together and never moved again: its address may be known from now on. So a program that
// enters again (a training step with a budget of its own) finds its state where it was, and the rest of the
// pool in one piece.
// If something cannot be brought back at all, that is an error, and it stays evicted. Nothing is lost: what
// it is made from is kept, and in a scope of the same budget it can come back.
void Session::settle() {
  adopt_all_raw();
  LivingStorages leaving = living();
  std::erase_if(leaving, [](const LivingStorage& it) { return it.record().is_exported.load(); });
  LivingStorages settled;
  std::exception_ptr lost;
  for (bool is_stuck = false; !leaving.empty() && !is_stuck;) {
    LivingStorages left;
    for (LivingStorage& storage : leaving) {
      try {
        bool is_settled = settle(storage.record());
        if (!is_settled) {
          move_out(settled);
          is_settled = settle(storage.record());
        }
        (is_settled ? settled : left).push_back(std::move(storage));
      } catch (...) {
        if (!lost) lost = std::current_exception();
      }
    }
    is_stuck = left.size() == leaving.size();
    leaving = std::move(left);
  }
  stay_in_place(settled);
  device_.wait();  // whoever uses it outside waits for nobody
  if (leaving.empty()) release_all_foreign();
  if (lost) std::rethrow_exception(lost);
  if (leaving.empty()) return;
  Bytes bytes = 0;
  for (const LivingStorage& storage : leaving) bytes += storage.record().bytes;
  const std::string text =
      "coop: " + std::to_string(leaving.size()) + " tensors, " + format_bytes(bytes) +
      ", outlive the budget's scope, are evicted, and cannot be brought back: they are recomputed "
      "inside the budget, and what cannot leave it (such as what NumPy looks at) takes too much of "
      "it. They are not lost: drop what is not needed, and use them inside the same budget again.";
  TORCH_CHECK_WITH(OutOfMemoryError, false, in_words_of_pytorch(options_.device.type(), text));
}

// From the oldest to the newest.
LivingStorages Session::living() {
  LivingStorages storages;
  {
    const std::scoped_lock lock(mutex_);
    storages.reserve(records_);
    for (StorageRecord* it = first_; it != nullptr; it = it->next) storages.emplace_back(*it);
  }
  std::erase_if(storages, [](LivingStorage& it) { return !it.hold(); });
  std::reverse(storages.begin(), storages.end());
  return storages;
}

// False if there is no room.
bool Session::settle(StorageRecord& record) {
  try {
    engine_.end_lineage(record.id);
    return true;
  } catch (const c10::OutOfMemoryError&) {
    return false;
  } catch (const OutOfMemory&) {
    return false;
  }
}

// As many as ordinary memory has room for.
void Session::move_out(LivingStorages& storages) {
  while (!storages.empty()) {
    try {
      move_out(storages.back());
    } catch (const c10::Error&) {
      return;
    }
    storages.pop_back();
  }
}

void Session::move_out(LivingStorage& storage) {
  const StorageRecord& record = storage.record();
  const auto home = at_home();
  c10::DataPtr outside = device_.plain_allocator().allocate(record.bytes);
  device_.copy(outside.get(), address_of(record.block), record.bytes);
  if (leave_with(storage.record(), outside)) release(storage.take());
}

void Session::stay_in_place(const LivingStorages& storages) {
  if (storages.empty()) return;
  engine_.compact();
  for (const LivingStorage& storage : storages) pin(storage.record());
}

}  // namespace coop::plugin
