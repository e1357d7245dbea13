// How a session comes to be at ease, and what was made then (Note [At ease]).
#include <utility>

#include "plugin/cpu_allocator.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {

// While others are shut out nothing may be done that needs Python, which one of them may have: neither to take hold
// of a storage, nor to drop one, nor to forget a Call, which holds some.
bool Session::try_ease() {
  if (!takes_light_calls() || this_thread.sessions != 1) return false;
  if (AloneInside::is_other_thread_inside()) return false;
  LivingStorages storages = living();
  try {
    for (const LivingStorage& storage : storages) engine_.end_lineage(storage.record().id);
  } catch (const OutOfMemory&) {  // something is evicted
    ease_.postpone(operators_so_far());
    return false;
  } catch (const c10::OutOfMemoryError&) {
    ease_.postpone(operators_so_far());
    return false;
  }
  const AloneInside alone;
  if (!alone || engine_.recorded_calls() > 0) {
    ease_.postpone(operators_so_far());
    return false;
  }
  for (LivingStorage& storage : storages) make_raw(storage);
  forget_what_feeds_calls();
  ease_.begin();
  if (!takes_light_calls())
    ease_.end();  // an allocation, which needs not be inside, was in between
  return is_at_ease();
}

// What others have a hand in stays a storage, and where it is.
void Session::make_raw(LivingStorage& storage) {
  StorageRecord& record = storage.record();
  if (record.is_exported) return;
  if (!record.is_trusted) return pin(record);
  {
    const std::scoped_lock lock(mutex_);
    raw_.reserve_claim();
  }
  const auto block = engine_.hand_back(record.id);
  if (!block) {
    const std::scoped_lock lock(mutex_);
    raw_.settle_claim();
    return;
  }
  void* data = engine_.address(*block);
  {
    const std::scoped_lock lock(mutex_);
    raw_.give_back(data, *block);
    raw_.note_owner(data, storage.impl());
  }
  c10::DataPtr memory(data, data, &free_raw_memory, device_.which());
  if (leave_with(record, memory)) return forget(storage.take());
  // The storage was given other memory at this moment. Whoever did that is about to release the record.
  static_cast<void>(memory.release_context());
  {
    const std::scoped_lock lock(mutex_);
    static_cast<void>(raw_.take(data));
  }
  record.id = engine_.add_source(record.token(), record.bytes, *block);
}

// There are no Calls.
void Session::forget_what_feeds_calls() noexcept {
  const std::scoped_lock lock(mutex_);
  for (StorageRecord* it = first_; it != nullptr; it = it->next) it->feeds_calls = false;
  for (const auto& [impl, record] : foreign_) record->feeds_calls = false;
}

bool Session::may_be_used_unheard() {
  if (ease_.is_on() || this_thread.is_unheard) return true;
  if (!ease_.may_have_stragglers()) return false;
  if (AloneInside::is_other_thread_inside()) return true;
  ease_.forget_stragglers();
  return false;
}

void Session::note_owner(c10::StorageImpl& impl) noexcept {
  const c10::DataPtr& memory = impl._mutable_data_ptr_no_checks();
  if (memory.get_deleter() != &free_raw_memory) return;
  const std::scoped_lock lock(mutex_);
  raw_.note_owner(memory.get(), impl);
}

void Session::adopt_all_raw() {
  if (may_be_used_unheard()) return;
  std::vector<RawBlocks::Owner> owners;
  {
    const std::scoped_lock lock(mutex_);
    owners = raw_.owners();
  }
  for (const auto& [owner, data] : owners) {
    const auto impl = owner.lock();
    // Other memory than that may be on its way into the storage, or out of it.
    if (impl.defined() && memory_of(*impl).data == data) static_cast<void>(adopt_raw(*impl));
  }
}

}  // namespace coop::plugin
