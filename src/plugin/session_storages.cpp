// The storages of a session: how they become known, leave, and are found again.
#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "plugin/cpu_allocator.hpp"
#include "plugin/gradients.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

// Who asked for an array of numpy's outside a scope has left a trace: the storage may no longer be resized.
// (Those of a checkpoint never may, and have no allocator.)
bool is_numpys_too(c10::StorageImpl& impl) {
  return !impl.resizable() && impl.allocator() != nullptr;
}

// Memory of PyTorch's own allocator, and of pools before this one, is written by operators. What numpy, another
// process or a file has a hand in can change at any time.
bool is_written_by_operators_only(const Device& device, c10::StorageImpl& impl,
                                  const Memory& memory) {
  const bool is_plain = memory.deleter == device.plain_allocator().raw_deleter();
  const bool is_from_earlier_pool = memory.record != nullptr ? memory.record->is_trusted.load()
                                                             : memory.deleter == &free_raw_memory;
  return (is_plain || is_from_earlier_pool) && !is_numpys_too(impl);
}

// The memory is the one that the record of a foreign storage was made for.
bool is_still(const StorageRecord& record, c10::StorageImpl& impl, const void* data) {
  return record.address == data && record.bytes == impl.nbytes();
}

}  // namespace

// --- ours ---

StorageRecord* Session::record_of(c10::StorageImpl& impl) {
  if (!device_.has(impl) || impl.sym_nbytes().is_heap_allocated()) return nullptr;
  for (;;) {
    const Memory memory = memory_of(impl);
    if (memory.record != nullptr && &memory.record->session == this) {
      // Another thread may be just making it known: the DataPtr leads to it a moment before it has a name.
      while (!memory.record->id.load()) std::this_thread::yield();
      return memory.record;
    }
    if (impl.nbytes() == 0 || memory.data == nullptr) return nullptr;
    if (!is_raw(memory)) return foreign_record_of(impl);
    if (StorageRecord* adopted = adopt_raw(impl)) return adopted;
    std::this_thread::yield();  // another thread is about to make it known
  }
}

StorageRecord* Session::known_record_of(c10::StorageImpl& impl) {
  if (!device_.has(impl)) return nullptr;
  const Memory memory = memory_of(impl);
  if (memory.record != nullptr && &memory.record->session == this) return memory.record;
  return find_foreign(impl, memory.data);
}

bool Session::is_light(c10::StorageImpl& impl, bool is_written, bool at_ease) {
  if (!device_.has(impl) || impl.sym_nbytes().is_heap_allocated()) return true;
  // Without the lock: raw memory that another thread makes known at this moment is at the same address
  // before and after.
  const c10::DataPtr& memory = impl._mutable_data_ptr_no_checks();
  const c10::DeleterFnPtr deleter = memory.get_deleter();
  if (deleter == &free_raw_memory && memory_.contains(memory.get())) {
    return at_ease || !is_large(impl.nbytes());
  }
  const bool is_outside = deleter != &storage_gone;
  if (is_outside && !is_written && at_ease && !device_.has_stand_ins()) return true;
  const StorageRecord* record = record_of(impl);
  if (record == nullptr) return true;
  const bool stays = record->is_small || record->is_foreign || (at_ease && record->is_exported);
  if (!stays) return false;
  return !is_written || !record->feeds_calls;
}

// Memory of the pool that came about out of our sight: contents without a history.
StorageRecord* Session::adopt_raw(c10::StorageImpl& impl) {
  auto record = std::make_unique<StorageRecord>(*this, impl);
  const Raw raw = claim_raw(impl);
  if (!raw) return nullptr;
  drop_old_foreign(impl, raw.data);  // it may have been one, and have been resized
  record->bytes = impl.nbytes();
  record->is_trusted = !is_numpys_too(impl);
  // Somebody may have its address.
  const bool stays = raw.has_outlived || !record->is_trusted || may_be_used_unheard();
  record->is_exported = stays;
  try {
    record->id = stays ? engine_.add_source_in_place(record->token(), record->bytes, raw.block)
                       : engine_.add_source(record->token(), record->bytes, raw.block);
  } catch (...) {
    give_back_raw(raw);
    throw;
  }
  // What is small is a light call's, and has been counted, or is not worth it.
  if (is_large(record->bytes)) made_.add(Taint::kUnseenMaker, record->bytes);
  link(*record);
  return record.release();
}

// What was raw and claimed has a record now.
void Session::link(StorageRecord& record) noexcept {
  const std::scoped_lock lock(mutex_);
  raw_.settle_claim();
  record.next = first_;
  if (first_ != nullptr) first_->previous = &record;
  first_ = &record;
  ++records_;
}

// The record leaves the list last: until then the session is not empty, and stays.
void Session::release(StorageRecord* record) noexcept {
  engine_.release(record->id);
  forget(record);
}

void Session::forget(StorageRecord* record) noexcept {
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
  if (!session->is_active()) Session::reap_those_that_are_over();
}

LivingStorage::~LivingStorage() {
  if (record_ != nullptr && let_go(*record_)) record_->session.release(record_);
}

void Session::end_lineage(c10::StorageImpl& impl) {
  StorageRecord* record = memory_of(impl).record;
  if (record == nullptr || &record->session != this) return;
  with_torch_errors([&] { engine_.end_lineage(record->id); });
}

// To be called while it is accumulated. The parameter has been read before, in the forward pass: it is known.
void Session::note_gradient(StorageRecord& gradient) {
  if (gradient.is_gradient.exchange(true)) return;
  c10::StorageImpl* impl = parameter_of_gradient();
  StorageRecord* record = impl != nullptr ? known_record_of(*impl) : nullptr;
  if (record != nullptr) record->is_parameter = true;
}

Session::Lasting Session::lasting() const {
  Lasting bytes;
  const auto add = [&](const StorageRecord& record) {
    if (record.is_parameter) {
      bytes.parameters += record.bytes;
    } else if (record.is_gradient) {
      bytes.gradients += record.bytes;
    }
  };
  const std::scoped_lock lock(mutex_);
  for (const StorageRecord* it = first_; it != nullptr; it = it->next) add(*it);
  for (const auto& [impl, record] : foreign_) {
    if (!record->storage.expired()) add(*record);
  }
  return bytes;
}

void Session::hand_over(const StorageRecord& record) {
  if (!streams_ || record.is_foreign || streams_->is_home()) return;
  streams_->begin_operator();
  streams_->use(record.block);
}

void Session::pin_storage(c10::StorageImpl& impl) {
  if (StorageRecord* record = record_of(impl)) pin(*record);
}

void Session::pin(StorageRecord& record) {
  engine_.keep_in_place(record.id);
  hand_over(record);
  record.is_exported = !record.is_foreign;  // which is nowhere in the pool to begin with
}

void Session::export_storage(c10::StorageImpl& impl) {
  StorageRecord* record = record_of(impl);
  if (record == nullptr) return;
  engine_.export_storage(record->id);
  hand_over(*record);
  record->is_exported = !record->is_foreign;
  record->is_trusted = false;  // whoever has the address may write there
}

// --- from elsewhere ---

// Note [Foreign storages]
//
// A parameter from before the scope is read and written by operators like any other storage: what was
// made from it must be protected before it is written. So the engine must know it; and its bytes count in
// the budget. A block of its size takes their room in the pool, where it is neither read nor written, and
// which the system may have back: what is in the pool and what is outside are together never more than
// the budget. Contents are found by address_of.
// Such a storage is held weakly, and strongly by the calls that read it. That it has died is found out by
// looking: before there are many more, and before memory counts as short.
StorageRecord* Session::foreign_record_of(c10::StorageImpl& impl) {
  const Memory memory = memory_of(impl);
  if (StorageRecord* known = find_foreign(impl, memory.data)) return known;
  drop_old_foreign(impl, memory.data);  // resized or shared, if it was there
  if (is_sweep_due()) sweep_foreign();
  return add_foreign(impl, memory, device_.has_stand_ins() ? impl.nbytes() : 0);
}

// With a block of that size in its place.
StorageRecord* Session::add_foreign(c10::StorageImpl& impl, const Memory& memory, Bytes room) {
  auto record = std::make_unique<StorageRecord>(*this, impl);
  record->bytes = impl.nbytes();
  record->is_foreign = true;
  record->address = memory.data;
  record->is_trusted = is_written_by_operators_only(device_, impl, memory);
  try {
    record->id = engine_.add_foreign_source(record->token(), record->bytes, room);
  } catch (const OutOfMemory&) {
    if (!sweep_foreign()) throw;
    record->id = engine_.add_foreign_source(record->token(), record->bytes, room);
  }
  const BlockId block = record->block;
  StorageRecord* result = record.get();
  const Bytes held = engine_.held_bytes();
  try {
    const std::scoped_lock lock(mutex_);
    foreign_bytes_ += room;
    note_held(held);
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
  if (found == foreign_.end() || !is_still(*found->second, impl, data)) return nullptr;
  return found->second.get();
}

// Not the one that another thread has just made, and uses.
void Session::drop_old_foreign(c10::StorageImpl& impl, const void* data) noexcept {
  std::unique_ptr<StorageRecord> record;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = foreign_.find(&impl);
    if (found == foreign_.end() || is_still(*found->second, impl, data)) return;
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
  } else if (stand_ins_[record->block.index()] == record.get()) {
    stand_ins_[record->block.index()] = nullptr;
  }
}

bool Session::is_sweep_due() const {
  const std::scoped_lock lock(mutex_);
  constexpr Bytes kShare = 16;
  return foreign_.size() >= sweep_at_ || foreign_bytes_ > pool_.bytes() / kShare;
}

// Those that have died; true if there were any. A call that reads one keeps it alive, so nobody reads these.
bool Session::sweep_foreign() {
  std::vector<std::unique_ptr<StorageRecord>> dead;
  {
    const std::scoped_lock lock(mutex_);
    for (auto it = foreign_.begin(); it != foreign_.end();) {
      const bool is_dead = it->second->storage.expired() && it->second->users == 0;
      if (is_dead) dead.push_back(std::move(it->second));
      it = is_dead ? foreign_.erase(it) : std::next(it);
    }
    sweep_at_ = 2 * foreign_.size() + 64;
    foreign_bytes_ = 0;
  }
  for (auto& record : dead) release_foreign(std::move(record));
  return !dead.empty();
}

void Session::release_all_foreign() noexcept {
  std::unordered_map<c10::StorageImpl*, std::unique_ptr<StorageRecord>> foreign;
  {
    const std::scoped_lock lock(mutex_);
    foreign.swap(foreign_);
  }
  outside_.reset();
  outside_bytes_ = 0;
  for (auto& entry : foreign) release_foreign(std::move(entry.second));
}

}  // namespace coop::plugin
