#include "plugin/storage_record.hpp"

#include <new>
#include <utility>

#include <torch/headeronly/version.h>

namespace coop::plugin {
namespace {

constexpr const char* kEvicted =
    "coop has evicted this tensor's memory, and was not asked before its address was taken. "
    "Operators bring it back by themselves; for other code, call coop's export on the tensor "
    "first.";

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 12
// 2.11 can switch the refusal on, but not off again. An explicit instantiation may name a private
// member: that is the one way to its flag.
template <bool c10::StorageImpl::*Flag>
struct FlagOf {
  friend bool c10::StorageImpl::*refusal_flag() { return Flag; }
};
bool c10::StorageImpl::*refusal_flag();
template struct FlagOf<&c10::StorageImpl::throw_on_immutable_data_ptr_>;

void accept_reads(c10::StorageImpl& impl) noexcept { impl.*refusal_flag() = false; }
#else
void accept_reads(c10::StorageImpl& impl) noexcept { impl.clear_data_ptr_access_error_msg_(); }
#endif

void refuse_reads(c10::StorageImpl& impl) noexcept {
  try {
    impl.release_data_and_set_meta_custom_data_ptr_error_msg_(kEvicted);
  } catch (const std::bad_alloc&) {
    // The flag is set before memory for the message is sought: it refuses, in PyTorch's own words.
    return;
  }
}

// Whatever the DataPtr's context is, it is ours, and is not to be told.
void set_data(c10::StorageImpl& impl, c10::DataPtr data) noexcept {
  static_cast<void>(impl._mutable_data_ptr_no_checks().release_context());
  impl.set_data_ptr_noswap(std::move(data));
}

}  // namespace

void give_memory(StorageRecord& record, void* data) noexcept {
  if (record.impl == nullptr || record.is_foreign) return;
  accept_reads(*record.impl);
  set_data(*record.impl, {data, &record, &storage_gone, c10::Device(c10::kCPU)});
}

void take_memory(StorageRecord& record) noexcept {
  if (record.impl == nullptr || record.is_foreign) return;
  refuse_reads(*record.impl);
  set_data(*record.impl, {nullptr, &record, &storage_gone, c10::Device(c10::kCPU)});
}

void leave_with(c10::StorageImpl& impl, c10::DataPtr data) noexcept {
  accept_reads(impl);
  set_data(impl, std::move(data));
}

}  // namespace coop::plugin
