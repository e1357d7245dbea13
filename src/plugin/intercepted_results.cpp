// What an operator has made and changed, and how the engine is told.
#include <algorithm>
#include <utility>

#include "plugin/intercepted_call.hpp"
#include "plugin/tensor_parts.hpp"

namespace coop::plugin {

// Which storages are new is seen by looking: schemas do not tell, and some operators return a view now
// and then.
void InterceptedCall::look_at_results() {
  const auto results = last_of(stack_, op_.schema().returns().size());
  for (const c10::IValue& it : results) {
    if (!is_transparent(it)) has_closed_results_ = true;
  }
  std::size_t position = 0;
  for_each_tensor(results, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    const bool is_plain = !is_strange(tensor);
    if (!is_plain) has_strange_results_ = true;
    if (!is_plain && !is_sparse(tensor)) has_closed_results_ = true;
    for_each_part(tensor, [&](const at::Tensor& part) {
      if (adopt(part) && recorded_ && is_plain) {
        recorded_->outputs.push_back({.position = position,
                                      .bytes = made_.back().record->bytes,
                                      .recipe = TensorRecipe::of(part)});
      }
    });
    ++position;
  });
  has_strange_results_ = has_strange_results_ || has_closed_results_;
}

// Whether its storage is new.
bool InterceptedCall::adopt(const at::Tensor& tensor) {
  c10::StorageImpl* impl = storage_of(tensor);
  const bool is_seen = std::any_of(made_.begin(), made_.end(),
                                   [&](const Made& made) { return made.record->impl == impl; });
  if (is_seen || find_use(impl) != nullptr) return false;
  auto record = std::make_unique<StorageRecord>(session_, *impl);
  made_.reserve(made_.size() + 1);
  const Session::Raw raw = session_.claim_raw(*impl);
  if (!raw) return false;
  if (raw.is_seen || raw.has_outlived) {  // made before, at ease, and only returned
    session_.give_back_raw(raw);
    static_cast<void>(session_.record_of(*impl));
    return false;
  }
  record->bytes = impl->nbytes();
  record->is_trusted = !is_opaque_ && !facts_.is_buffer;
  record->is_filled = covers_storage(tensor);
  made_.push_back({.record = std::move(record), .raw = raw});
  return true;
}

// Numbered like the outputs of the engine's Call: what was written where it was, then what was made.
void InterceptedCall::describe_contents() {
  recorded_->contents =
      std::make_unique<RecordedCall::Contents[]>(recorded_->written + made_.size());  // NOLINT
  std::size_t output = 0;
  const auto describe = [&](const StorageRecord& record, const void* data) {
    RecordedCall::Contents& contents = recorded_->contents[output++];
    contents.bytes = record.bytes;
    contents.is_filled = record.is_filled;
    const bool can_go = record.is_filled && session_.is_large(record.bytes);
    if (can_go) contents.made = session_.world().sum_of_made(data, record.bytes);
  };
  for (const Use& use : uses_) {
    if (use.role == Role::kOverwritten) use.record->is_filled = true;
    if (use.role == Role::kChanged || use.role == Role::kOverwritten) {
      describe(*use.record, use.impl->data());
    }
  }
  for (const Made& made : made_) describe(*made.record, made.raw.data);
}

void InterceptedCall::finish(double cost) {
  Engine& engine = session_.engine();
  if (has_strange_results_ && recorded_) {
    recorded_ = nullptr;
    taint_ = Taint::kStrangeTensor;
  }
  if (recorded_) {
    describe_contents();
    recorded_->cost = cost;
    if (random_) recorded_->random = std::make_unique<RandomState>(*std::move(random_));
  }
  if (audit_) finish_audit();
  c10::SmallVector<NewOutput, 4> outputs;
  for (const Made& made : made_) {
    outputs.push_back(
        {.block = made.raw.block, .storage = made.record->token(), .bytes = made.record->bytes});
  }
  const CallResult result{.token = recorded_ ? TorchWorld::token_of(*recorded_) : 0,
                          .cost = cost,
                          .is_replayable = recorded_ != nullptr,
                          .outputs = outputs};
  const std::vector<StorageId> ids = engine.end_call(call_, result);
  note_what_it_feeds_on();
  static_cast<void>(recorded_.release());  // the engine has its token
  count_made(call_.was_recorded || audit_ != nullptr);
  for (std::size_t i = 0; i < made_.size(); ++i) {
    StorageRecord& record = *made_[i].record.release();
    record.id = ids[i];
    if (taint_ == Taint::kGradient) session_.note_gradient(record);
    session_.link(record);
  }
  made_.clear();
  if (!side_effects_.writes.empty()) static_cast<void>(engine.end_call(side_effects_, {}));

  // What code or objects that we cannot look into have had in their hands is not to be relied on.
  if (is_opaque_ || has_closed_results_) {
    const auto results = last_of(stack_, op_.schema().returns().size());
    for_each_tensor(results, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
      if (!is_strange(tensor)) kept_bytes_ += tensor.nbytes();
    });
    for (const Use& use : uses_) {
      if (use.record->is_trusted && !use.record->is_foreign) kept_bytes_ += use.record->bytes;
      use.record->is_trusted = false;
      const bool is_held = has_closed_results_ && use.record->impl != nullptr;
      if (is_held && !use.record->is_foreign) session_.export_storage(*use.impl);
    }
  }
}

// Contents that are new, in the pool.
void InterceptedCall::count_made(bool was_recorded) const {
  const Taint taint = taint_ == Taint::kNone && !was_recorded ? Taint::kWrittenSource : taint_;
  const auto count = [&](const StorageRecord& record) {
    const bool is_small = record.bytes <= session_.options().small_limit;
    session_.made().add(taint == Taint::kNone && is_small ? Taint::kSmall : taint, record.bytes);
  };
  for (const Use& use : uses_) {
    const bool is_written = use.role == Role::kChanged || use.role == Role::kOverwritten;
    if (is_written && !use.record->is_foreign) count(*use.record);
  }
  for (const Made& made : made_) count(*made.record);
}

// Of a Call that makes nothing but small things nothing is kept.
void InterceptedCall::note_what_it_feeds_on() noexcept {
  const bool is_kept = recorded_ && call_.was_recorded &&
                       (std::any_of(made_.begin(), made_.end(),
                                    [](const Made& made) { return !made.record->is_small; }) ||
                        std::any_of(uses_.begin(), uses_.end(), [](const Use& use) {
                          return use.role != Role::kRead && !use.record->is_small;
                        }));
  if (!is_kept) return;
  for (const Use& use : uses_) use.record->feeds_calls = true;
}

void InterceptedCall::let_go() noexcept {
  for (Use& use : uses_) {
    // The storage may have got other memory meanwhile.
    if (plugin::let_go(*use.record)) session_.release(use.record);
  }
  uses_.clear();
}

}  // namespace coop::plugin
