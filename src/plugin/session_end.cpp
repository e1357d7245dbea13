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
  Storages leaving = living();
  std::erase_if(leaving, [](const auto& impl) {
    const StorageRecord* record = memory_of(*impl).record;
    return record == nullptr || record->is_exported;
  });
  Storages settled;
  std::exception_ptr lost;
  for (bool is_stuck = false; !leaving.empty() && !is_stuck;) {
    Storages left;
    for (auto& impl : leaving) {
      try {
        bool is_settled = settle(*impl);
        if (!is_settled) {
          move_out(settled);
          is_settled = settle(*impl);
        }
        (is_settled ? settled : left).push_back(impl);
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
  for (const auto& impl : leaving) bytes += impl->nbytes();
  const std::string text =
      "coop: " + std::to_string(leaving.size()) + " tensors, " + format_bytes(bytes) +
      ", outlive the budget's scope, are evicted, and cannot be brought back: neither the pool nor "
      "ordinary memory has room. They are not lost: drop what is not needed, and use them inside "
      "the same budget again.";
  TORCH_CHECK_WITH(OutOfMemoryError, false, in_words_of_pytorch(options_.device.type(), text));
}

// From the oldest to the newest.
Session::Storages Session::living() {
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> alive;
  {
    const std::scoped_lock lock(mutex_);
    for (StorageRecord* it = first_; it != nullptr; it = it->next) alive.push_back(storage_of(*it));
  }
  Storages storages;
  for (const auto& weak : alive) {
    auto impl = weak.lock();
    if (impl.defined()) storages.push_back(std::move(impl));
  }
  std::reverse(storages.begin(), storages.end());
  return storages;
}

// False if there is no room.
bool Session::settle(c10::StorageImpl& impl) {
  StorageRecord* record = memory_of(impl).record;
  if (record == nullptr) return true;
  try {
    engine_.end_lineage(record->id);
    return true;
  } catch (const c10::OutOfMemoryError&) {
    return false;
  } catch (const OutOfMemory&) {
    return false;
  }
}

// As many as ordinary memory has room for.
void Session::move_out(Storages& storages) {
  while (!storages.empty()) {
    StorageRecord* record = memory_of(*storages.back()).record;
    try {
      if (record != nullptr) move_out(*record);
    } catch (const c10::Error&) {
      return;
    }
    storages.pop_back();
  }
}

void Session::move_out(StorageRecord& record) {
  const auto home = at_home();
  c10::DataPtr outside = device_.plain_allocator().allocate(record.bytes);
  device_.copy(outside.get(), address_of(record.block), record.bytes);
  leave_with(record, std::move(outside));
  release(&record);
}

void Session::stay_in_place(const Storages& storages) {
  if (storages.empty()) return;
  engine_.compact();
  for (const auto& impl : storages) {
    if (memory_of(*impl).record != nullptr) pin_storage(*impl);
  }
}

}  // namespace coop::plugin
