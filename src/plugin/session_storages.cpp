// The storages of a session: how they become known, leave, and are found again.
#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "plugin/cpu_allocator.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

// Memory of PyTorch's own allocator is written by operators. What numpy, another process or a file has a
// hand in can change at any time. Who asked for an array of numpy's before the scope has left a trace: the
// storage may no longer be resized. (Those of a checkpoint never may, and have no allocator.)
bool is_written_by_operators_only(c10::StorageImpl& impl, const Memory& memory) {
  const bool is_plain = memory.deleter == plain_allocator().raw_deleter();
  return is_plain && (impl.resizable() || impl.allocator() == nullptr);
}

}  // namespace

// --- ours ---

StorageRecord* Session::record_of(c10::StorageImpl& impl) {
  if (impl.device_type() != c10::kCPU || impl.sym_nbytes().is_heap_allocated()) return nullptr;
  for (;;) {
    const Memory memory = memory_of(impl);
    if (memory.record != nullptr && &memory.record->session == this) return memory.record;
    if (impl.nbytes() == 0 || memory.data == nullptr) return nullptr;
    if (!is_raw(memory)) return foreign_record_of(impl);
    if (StorageRecord* adopted = adopt_raw(impl)) return adopted;
    std::this_thread::yield();  // another thread is about to make it known
  }
}

// Memory of the pool that came about out of our sight: contents without a history.
StorageRecord* Session::adopt_raw(c10::StorageImpl& impl) {
  drop_foreign(impl);  // it may have been one, and have been resized
  auto record = std::make_unique<StorageRecord>(*this);
  Raw raw = claim_raw(impl);
  if (raw.empty()) return nullptr;
  record->impl = &impl;
  record->bytes = impl.nbytes();
  try {
    record->id = engine_.add_source(record->token(), record->bytes, raw.mapped());
  } catch (...) {
    give_back_raw(std::move(raw));
    throw;
  }
  made_.add(Taint::kUnseenMaker, record->bytes);
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

// The record leaves the list last: until then the session is not empty, and stays.
void Session::release(StorageRecord* record) noexcept {
  engine_.release(record->id);
  {
    const std::scoped_lock lock(mutex_);
    (record->previous != nullptr ? record->previous->next : first_) = record->next;
    if (record->next != nullptr) record->next->previous = record->previous;
    --records_;
  }
  delete record;
}

void storage_gone(void* context) noexcept {
  auto* record = static_cast<StorageRecord*>(context);
  // In a forked child the record is the parent's, like the memory.
  if (Session::is_in_forked_child()) return;
  const std::shared_ptr<Session> session = record->session.weak_from_this().lock();
  // The operator that runs with it (`resize_`) lets it go when it ends.
  if (!lose_storage(*record)) return;
  session->release(record);
  session->reap_if_over();
}

void Session::end_lineage(c10::StorageImpl& impl) {
  StorageRecord* record = memory_of(impl).record;
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
  const Memory memory = memory_of(impl);
  if (StorageRecord* known = find_foreign(impl, memory.data)) return known;
  drop_foreign(impl);  // resized or shared, if it was there
  if (is_sweep_due()) sweep_foreign();

  auto record = std::make_unique<StorageRecord>(*this);
  record->impl = &impl;
  record->bytes = impl.nbytes();
  record->is_foreign = true;
  record->foreign.emplace(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(&impl));
  record->address = memory.data;
  record->is_trusted = is_written_by_operators_only(impl, memory);
  const BlockId block = engine_.allocate(kStandInBytes);
  try {
    record->id = engine_.add_source(record->token(), record->bytes, block);
  } catch (...) {
    engine_.free(block);
    throw;
  }
  StorageRecord* result = record.get();
  try {
    engine_.export_storage(record->id);
    const std::scoped_lock lock(mutex_);
    if (stand_ins_.size() <= block.index()) stand_ins_.resize(std::size_t{block.index()} + 1);
    // Another thread may have been first.
    if (foreign_.try_emplace(&impl, std::move(record)).second) {
      stand_ins_[block.index()] = result;
      return result;
    }
  } catch (...) {
    if (record != nullptr) engine_.release(record->id);
    throw;
  }
  engine_.release(record->id);
  return find_foreign(impl, memory.data);
}

StorageRecord* Session::find_foreign(c10::StorageImpl& impl, const void* data) {
  const std::scoped_lock lock(mutex_);
  const auto found = foreign_.find(&impl);
  const bool is_known = found != foreign_.end() && found->second->address == data &&
                        found->second->bytes == impl.nbytes();
  return is_known ? found->second.get() : nullptr;
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

bool Session::is_sweep_due() const {
  const std::scoped_lock lock(mutex_);
  return foreign_.size() >= sweep_at_;
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
// have left. One that cannot be made again keeps nobody else from leaving.
void Session::evacuate() {
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> alive;
  {
    const std::scoped_lock lock(mutex_);
    for (StorageRecord* it = first_; it != nullptr; it = it->next) {
      if (!it->is_exported) alive.push_back(storage_of(*it));
    }
  }
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> leaving;
  for (const auto& weak : alive) {
    auto impl = weak.lock();
    if (impl.defined()) leaving.push_back(std::move(impl));
  }
  // The list has the newest first: from the oldest on, less has to be made again.
  std::reverse(leaving.begin(), leaving.end());
  std::exception_ptr lost;
  for (bool is_stuck = false; !leaving.empty() && !is_stuck;) {
    std::vector<c10::intrusive_ptr<c10::StorageImpl>> left;
    for (auto& impl : leaving) {
      StorageRecord* record = memory_of(*impl).record;
      if (record == nullptr) continue;
      try {
        engine_.make_resident(record->id);
        move_out(*record);
      } catch (const c10::OutOfMemoryError&) {
        left.push_back(impl);
      } catch (const OutOfMemory&) {
        left.push_back(impl);
      } catch (...) {
        if (!lost) lost = std::current_exception();
      }
    }
    is_stuck = left.size() == leaving.size();
    leaving = std::move(left);
  }
  std::unordered_map<c10::StorageImpl*, std::unique_ptr<StorageRecord>> foreign;
  {
    const std::scoped_lock lock(mutex_);
    foreign.swap(foreign_);
  }
  for (auto& entry : foreign) release_foreign(std::move(entry.second));
  if (lost) std::rethrow_exception(lost);
  TORCH_CHECK_WITH(OutOfMemoryError, leaving.empty(), "coop: ", leaving.size(),
                   " evicted tensors outlive the budget's scope and cannot be brought back in it");
}

void Session::move_out(StorageRecord& record) {
  c10::DataPtr outside = plain_allocator().allocate(record.bytes);
  std::memcpy(outside.get(), address_of(record.block), record.bytes);
  leave_with(record, std::move(outside));
  release(&record);
}

}  // namespace coop::plugin
