#include "plugin/storage_record.hpp"

#include <mutex>
#include <new>
#include <utility>

namespace coop::plugin {
namespace {

constexpr const char* kEvicted =
    "coop has evicted this tensor's memory, and was not asked before its address was taken. "
    "Operators bring it back by themselves; for other code, coop.pin(tensor) does, and keeps it "
    "there.";

// Guards the DataPtr of every storage of ours, and who lets go of its record.
std::mutex storages_mutex;

// Members of PyTorch's that have no function which writes them and nothing else. An explicit instantiation
// may name a private member: that is the one way to them.
template <bool c10::StorageImpl::*Refusal, c10::detail::UniqueVoidPtr c10::DataPtr::*Pointer,
          void* c10::detail::UniqueVoidPtr::*Data>
struct Members {
  friend void set_data_word(c10::StorageImpl& impl, void* data) noexcept {
    impl._mutable_data_ptr_no_checks().*Pointer.*Data = data;
  }
  friend void set_refusal(c10::StorageImpl& impl, bool refuses) noexcept {
    impl.*Refusal = refuses;
  }
};
void set_data_word(c10::StorageImpl& impl, void* data) noexcept;
void set_refusal(c10::StorageImpl& impl, bool refuses) noexcept;
template struct Members<&c10::StorageImpl::throw_on_immutable_data_ptr_, &c10::DataPtr::ptr_,
                        &c10::detail::UniqueVoidPtr::data_>;

// Whatever the DataPtr's context is, it is ours, and is not to be told.
void set_data(c10::StorageImpl& impl, c10::DataPtr data) noexcept {
  static_cast<void>(impl._mutable_data_ptr_no_checks().release_context());
  impl.set_data_ptr_noswap(std::move(data));
}

// It is there for certain: whoever makes it ours holds it.
void make_ours(StorageRecord& record, void* data) noexcept {
  c10::StorageImpl& impl = *record.impl;
  set_data(impl, {data, &record, &storage_gone, impl.device()});
  try {
    impl.release_data_and_set_meta_custom_data_ptr_error_msg_(kEvicted);
  } catch (const std::bad_alloc&) {
    // Without a message it refuses in PyTorch's own words.
    static_cast<void>(record);
  }
  set_refusal(impl, false);
  record.is_ours = true;
}

c10::weak_intrusive_ptr<c10::StorageImpl> weak_reference_to(c10::StorageImpl& impl) {
  c10::raw::weak_intrusive_ptr::incref(&impl);
  return c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(&impl);
}

bool leads_here(const StorageRecord& record) {
  if (record.impl == nullptr) return false;
  const c10::DataPtr& data = record.impl->_mutable_data_ptr_no_checks();
  return data.get_deleter() == &storage_gone && data.get_context() == &record;
}

}  // namespace

StorageRecord::StorageRecord(Session& owner, c10::StorageImpl& storage_impl)
    : session(owner), storage(weak_reference_to(storage_impl)), impl(&storage_impl) {}

Memory memory_of(c10::StorageImpl& impl) {
  const std::scoped_lock lock(storages_mutex);
  const c10::DataPtr& data = impl._mutable_data_ptr_no_checks();
  const bool is_ours = data.get_deleter() == &storage_gone;
  return {.data = data.get(),
          .deleter = data.get_deleter(),
          .record = is_ours ? static_cast<StorageRecord*>(data.get_context()) : nullptr};
}

void give_memory(StorageRecord& record, void* data) noexcept {
  if (record.is_foreign) return;
  const std::scoped_lock lock(storages_mutex);
  if (!record.is_ours) {
    make_ours(record, data);
  } else if (leads_here(record)) {
    set_data_word(*record.impl, data);
    set_refusal(*record.impl, false);
  }
}

void take_memory(StorageRecord& record) noexcept {
  if (record.is_foreign) return;
  const std::scoped_lock lock(storages_mutex);
  if (!leads_here(record)) return;
  set_refusal(*record.impl, true);
  set_data_word(*record.impl, nullptr);
}

bool leave_with(StorageRecord& record, c10::DataPtr& data) noexcept {
  const std::scoped_lock lock(storages_mutex);
  if (!leads_here(record)) return false;
  set_refusal(*record.impl, false);
  set_data(*record.impl, std::move(data));
  return true;
}

// A strong reference must not be taken under the lock: if Python has the storage too, that takes the GIL.
std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> use(StorageRecord& record) noexcept {
  const std::scoped_lock lock(storages_mutex);
  if (record.impl == nullptr) return std::nullopt;
  ++record.users;
  return record.storage;
}

bool let_go(StorageRecord& record) noexcept {
  const std::scoped_lock lock(storages_mutex);
  return --record.users == 0 && record.impl == nullptr;
}

bool lose_storage(StorageRecord& record) noexcept {
  const std::scoped_lock lock(storages_mutex);
  record.impl = nullptr;
  return record.users == 0;
}

}  // namespace coop::plugin
