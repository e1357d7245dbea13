// The storages of a session: how they become known, leave, and are found again.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/base/check.hpp"
#include "plugin/cpu_allocator.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {

// --- ours ---

StorageRecord* Session::record_of(c10::StorageImpl& impl) {
  if (impl.device_type() != c10::kCPU || impl.sym_nbytes().is_heap_allocated()) return nullptr;
  StorageRecord* record = record_in(impl);
  if (record != nullptr && &record->session == this) return record;
  if (impl.nbytes() == 0 || impl._mutable_data_ptr_no_checks().get() == nullptr) return nullptr;
  return is_raw(impl) ? adopt_raw(impl) : foreign_record_of(impl);
}

// Memory of the pool that came about out of our sight: contents without a history.
StorageRecord* Session::adopt_raw(c10::StorageImpl& impl) {
  drop_foreign(impl);  // it may have been one, and have been resized
  void* data = impl._mutable_data_ptr_no_checks().get();
  auto record = std::make_unique<StorageRecord>(*this);
  record->impl = &impl;
  record->bytes = impl.nbytes();
  record->id = engine_.add_source(record->token(), record->bytes, raw_block_of(impl));
  forget_raw(data);
  link(*record);
  return record.release();
}

void Session::link(StorageRecord& record) {
  const std::scoped_lock lock(mutex_);
  record.next = first_;
  if (first_ != nullptr) first_->previous = &record;
  first_ = &record;
  ++records_;
}

void Session::release(StorageRecord* record) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    (record->previous != nullptr ? record->previous->next : first_) = record->next;
    if (record->next != nullptr) record->next->previous = record->previous;
    --records_;
  }
  engine_.release(record->id);
  delete record;
}

void storage_gone(void* context) noexcept {
  auto* record = static_cast<StorageRecord*>(context);
  // In a forked child the record is the parent's, like the memory.
  if (Session::is_in_forked_child()) return;
  record->impl = nullptr;
  // The operator that runs with it (`resize_`) lets it go when it ends.
  if (record->users == 0) record->session.release(record);
}

void Session::end_lineage(c10::StorageImpl& impl) {
  StorageRecord* record = record_in(impl);
  if (record == nullptr || &record->session != this) return;
  with_torch_errors([&] { engine_.end_lineage(record->id); });
}

void Session::export_storage(c10::StorageImpl& impl) {
  StorageRecord* record = record_of(impl);
  if (record == nullptr) return;
  engine_.export_storage(record->id);
  record->is_exported = !record->is_foreign;  // which is nowhere in the pool to begin with
  record->is_trusted = false;                 // whoever has the address may write there
}

// --- from elsewhere ---

// Note [Foreign storages]
//
// A parameter from before the scope is read and written by operators like any other storage: what was
// made from it must be protected before it is written. So the engine must know it; but it has no block of
// the pool. A block of the least size stands for it there: as far as the engine can tell, that is where
// its contents are, and that they may neither go nor move. The world knows better (address_of).
// Such a storage is held weakly, and strongly by the calls that read it.
StorageRecord* Session::foreign_record_of(c10::StorageImpl& impl) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = foreign_.find(&impl);
    if (found != foreign_.end() && found->second->bytes == impl.nbytes()) {
      return found->second.get();
    }
  }
  drop_foreign(impl);  // resized, if it was there
  if (foreign_.size() >= sweep_at_) sweep_foreign();

  auto record = std::make_unique<StorageRecord>(*this);
  record->impl = &impl;
  record->bytes = impl.nbytes();
  record->is_foreign = true;
  record->foreign.emplace(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(&impl));
  // Memory of PyTorch's own allocator is written by operators. What numpy, another process or a file
  // has a hand in can change at any time.
  record->is_trusted =
      impl._mutable_data_ptr_no_checks().get_deleter() == plain_allocator().raw_deleter();
  record->block = engine_.allocate(kStandInBytes);
  StorageRecord* result = record.get();
  try {
    const std::scoped_lock lock(mutex_);
    const std::size_t index = record->block.index();
    if (stand_ins_.size() <= index) stand_ins_.resize(index + 1);
    stand_ins_[index] = result;
    foreign_.emplace(&impl, std::move(record));
  } catch (...) {
    engine_.free(result->block);
    throw;
  }
  result->id = engine_.add_source(result->token(), result->bytes, result->block);
  engine_.export_storage(result->id);
  return result;
}

void Session::drop_foreign(c10::StorageImpl& impl) noexcept {
  std::unique_ptr<StorageRecord> record;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = foreign_.find(&impl);
    if (found == foreign_.end()) return;
    record = std::move(found->second);
    foreign_.erase(found);
  }
  release_foreign(std::move(record));
}

void Session::release_foreign(std::unique_ptr<StorageRecord> record) noexcept {
  engine_.release(record->id);
  const bool is_read = engine_.has_block(record->block);
  const std::scoped_lock lock(mutex_);
  // If calls still read it, it was changed behind our back. The record stays then, so that nobody takes
  // what stands for it for the thing itself.
  if (is_read) {
    static_cast<void>(record.release());
  } else {
    stand_ins_[record->block.index()] = nullptr;
  }
}

// Those that have died. A call that reads one keeps it alive, so nobody reads these.
void Session::sweep_foreign() {
  std::vector<std::unique_ptr<StorageRecord>> dead;
  {
    const std::scoped_lock lock(mutex_);
    for (auto it = foreign_.begin(); it != foreign_.end();) {
      const bool is_dead = it->second->foreign->expired() && it->second->users == 0;
      if (is_dead) dead.push_back(std::move(it->second));
      it = is_dead ? foreign_.erase(it) : std::next(it);
    }
    sweep_at_ = 2 * foreign_.size() + 64;
  }
  for (auto& record : dead) release_foreign(std::move(record));
}

// --- the end ---

// Everything that lives on goes out into ordinary memory. One storage at a time, so that the pool is
// large enough for each if it was for the program; what does not fit yet is tried again when others
// have left.
void Session::evacuate() {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> leaving;
  {
    const std::scoped_lock lock(mutex_);
    for (StorageRecord* it = first_; it != nullptr; it = it->next) {
      if (it->impl == nullptr || it->is_exported) continue;
      leaving.push_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(it->impl));
    }
  }
  // The list has the newest first: from the oldest on, less has to be made again.
  std::reverse(leaving.begin(), leaving.end());
  while (!leaving.empty()) {
    std::vector<c10::intrusive_ptr<c10::StorageImpl>> left;
    for (auto& impl : leaving) {
      StorageRecord* record = record_in(*impl);
      if (record == nullptr) continue;
      try {
        engine_.make_resident(record->id);
      } catch (const c10::OutOfMemoryError&) {
        left.push_back(impl);
        continue;
      } catch (const OutOfMemory&) {
        left.push_back(impl);
        continue;
      }
      move_out(*record);
    }
    TORCH_CHECK_WITH(
        OutOfMemoryError, left.size() < leaving.size(), "coop: ", left.size(),
        " evicted tensors outlive the budget's scope and cannot be brought back in it");
    leaving = std::move(left);
  }
  std::unordered_map<c10::StorageImpl*, std::unique_ptr<StorageRecord>> foreign;
  {
    const std::scoped_lock lock(mutex_);
    foreign.swap(foreign_);
  }
  for (auto& entry : foreign) release_foreign(std::move(entry.second));
}

void Session::move_out(StorageRecord& record) {
  c10::DataPtr outside = plain_allocator().allocate(record.bytes);
  std::memcpy(outside.get(), address_of(record.block), record.bytes);
  leave_with(*record.impl, std::move(outside));
  release(&record);
}

}  // namespace coop::plugin
