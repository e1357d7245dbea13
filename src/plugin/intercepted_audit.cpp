// The part of an operator's run that an audit adds.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "plugin/audit.hpp"
#include "plugin/intercepted_call.hpp"
#include "plugin/tensor_parts.hpp"

namespace coop::plugin {

void InterceptedCall::begin_audit() {
  std::vector<Audit::Use> uses;
  for (const Use& use : uses_) {
    uses.push_back({.impl = use.impl.get(),
                    .is_written = use.role != Role::kRead,
                    .is_left_out = use.role == Role::kSideEffect,
                    .is_input = use.role != Role::kOverwritten,
                    .number = use.number});
  }
  audit_ = std::make_unique<Audit>(std::move(uses));
}

// Storages among the results that are no argument's, whether we know them or not.
std::vector<c10::StorageImpl*> InterceptedCall::new_storages() {
  std::vector<c10::StorageImpl*> found;
  const auto results = last_of(stack_, op_.schema().returns().size());
  for_each_tensor(results, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    for_each_part(tensor, [&](const at::Tensor& part) {
      c10::StorageImpl* impl = storage_of(part);
      const bool is_seen = std::find(found.begin(), found.end(), impl) != found.end();
      if (!is_seen && find_use(impl) == nullptr && part.device().is_cpu()) found.push_back(impl);
    });
  });
  return found;
}

// While an audit goes on, nothing is recorded, so that nothing can be evicted.
void InterceptedCall::finish_audit() {
  std::vector<c10::StorageImpl*> made;
  made.reserve(made_.size());
  for (const Made& it : made_) made.push_back(it.record->impl);
  audit_->look(new_storages(), facts_.is_random || is_opaque_);
  if (recorded_) audit_->run_again(*recorded_, made);
  session_.findings().add(op_, audit_->findings());
  recorded_ = nullptr;
}

}  // namespace coop::plugin
