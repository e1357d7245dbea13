#include "plugin/intercepted_call.hpp"

#include <algorithm>
#include <utility>

#include <c10/core/impl/PythonDispatcherTLS.h>

#include "plugin/dispatch_key.hpp"
#include "plugin/gradients.hpp"
#include "plugin/registered_operators.hpp"
#include "plugin/tensor_parts.hpp"
#include "plugin/warnings.hpp"

namespace coop::plugin {
namespace {

bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

at::Generator generator_among(std::span<const c10::IValue> arguments, c10::Device device) {
  for (const c10::IValue& it : arguments) {
    if (it.isGenerator()) return it.toGenerator();
  }
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

InterceptedCall::InterceptedCall(Session& session, const c10::OperatorHandle& op,
                                 const OperatorFacts& facts, c10::DispatchKeySet below,
                                 torch::jit::Stack& stack, bool is_opaque)
    : session_(session),
      op_(op),
      facts_(facts),
      below_(below),
      stack_(stack),
      arguments_(last_of(stack, op.schema().arguments().size())),
      is_opaque_(is_opaque) {}

InterceptedCall::InterceptedCall(Session& session, const c10::OperatorHandle& op,
                                 const OperatorFacts& facts, c10::DispatchKeySet below,
                                 torch::jit::Stack& stack, std::span<const c10::IValue> arguments)
    : session_(session),
      op_(op),
      facts_(facts),
      below_(below),
      stack_(stack),
      arguments_(arguments),
      is_opaque_(false) {}

InterceptedCall::~InterceptedCall() { let_go(); }

void InterceptedCall::run() {
  session_.count_operator();
  const OwnTime::Watch watch(session_.own_time());
  const Running running(op_);
  session_.look_at_pace();
  with_torch_errors([&] {
    session_.look_after_ease();
    look_at_arguments();
    begin();
  });
  try {
    if (session_.options().audit) begin_audit();
    turn_ = session_.turn_to_draw(facts_.is_random);
    record_arguments();
    if (session_.streams() != nullptr) use_on_this_stream();
    start_ = session_.times().begin(kind());
    run_kernel();
    const double cost = session_.times().end(*start_);
    start_.reset();
    end_drawing();
    finish_run(cost);
  } catch (...) {
    abort();
    throw;
  }
  let_go();
  if (this_thread.unknown_depth == 0) session_.between_operators();
  if (facts_.kind == OperatorFacts::Kind::kUnknown) warn_of_unknown(op_, kept_bytes_);
}

// What it has read is what it was, and where it was.
void InterceptedCall::note_that_it_ran(const OperatorTimes::Start& start) {
  with_torch_errors([&] {
    look_at_arguments();
    begin();
  });
  try {
    record_arguments();
    if (recorded_) {
      const c10::impl::ExcludeDispatchKeyGuard as_it_ran(kOurKeys);
      recorded_->ambience = Ambience::shared_of_this_thread(session_.options().device.type());
    }
    finish_run(session_.times().end_as(kind(), start));
  } catch (...) {
    abort();
    throw;
  }
  let_go();
  if (this_thread.unknown_depth == 0) session_.between_operators();
}

void InterceptedCall::end_drawing() {
  if (random_ && !random_->has_moved()) random_.reset();
  turn_.end();
}

void InterceptedCall::finish_run(double cost) {
  facts_.last_cost.store(cost, std::memory_order_relaxed);
  look_at_results();
  with_torch_errors([&] { finish(cost); });
}

void InterceptedCall::abort() noexcept {
  turn_.end();
  if (start_) session_.times().drop(*start_);
  for (const Made& made : made_) session_.give_back_raw(made.raw);
  session_.engine().abort_call(call_);
  session_.engine().abort_call(side_effects_);
}

// --- before ---

InterceptedCall::Role InterceptedCall::role_of(const at::Tensor& tensor,
                                               std::size_t argument) const {
  if (is_opaque_) return Role::kChanged;
  if (facts_.is_side_effect(argument)) {
    return arguments_[facts_.side_effects_if].toBool() ? Role::kSideEffect : Role::kRead;
  }
  if (!facts_.writes[argument]) return Role::kRead;
  return facts_.is_overwriting && covers_storage(tensor) ? Role::kOverwritten : Role::kChanged;
}

void InterceptedCall::look_at_arguments() {
  for (const c10::IValue& it : arguments_) {
    if (!is_transparent(it)) has_strange_tensors_ = true;
  }
  for_each_tensor(arguments_, [&](const at::Tensor& tensor, std::size_t argument, std::int64_t) {
    const bool is_read_only = !is_opaque_ && !facts_.writes[argument];
    if (is_number(tensor) && is_read_only) return;
    if (is_strange(tensor)) has_strange_tensors_ = true;
    if (facts_.has_template && argument == 0 && is_read_only) return;
    for_each_part(tensor, [&](const at::Tensor& part) { add_use(part, role_of(part, argument)); });
  });
}

void InterceptedCall::add_use(const at::Tensor& tensor, Role role) {
  c10::StorageImpl* impl = storage_of(tensor);
  if (Use* found = find_use(impl)) {
    // Two things at once: the careful answer.
    if (found->role != role) found->role = Role::kChanged;
    return;
  }
  StorageRecord* record = session_.record_of(*impl);
  if (record == nullptr) {
    // While something is compiled for sizes that change, a size is no number.
    const bool is_empty = !impl->sym_nbytes().is_heap_allocated() && impl->nbytes() == 0;
    reads_elsewhere_ = reads_elsewhere_ || !is_empty;
    return;
  }
  ++record->users;
  uses_.push_back({.impl = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl),
                   .record = record,
                   .role = role});
  // An optimizer's operators have thousands.
  constexpr std::size_t kMany = 32;
  if (uses_.size() == kMany) {
    for (std::size_t i = 0; i < uses_.size(); ++i) places_.emplace(uses_[i].impl.get(), i);
  } else if (uses_.size() > kMany) {
    places_.emplace(impl, uses_.size() - 1);
  }
}

InterceptedCall::Use* InterceptedCall::find_use(const c10::StorageImpl* impl) {
  if (!places_.empty()) {
    const auto place = places_.find(impl);
    return place == places_.end() ? nullptr : &uses_[place->second];
  }
  const auto found = std::find_if(uses_.begin(), uses_.end(),
                                  [&](const Use& use) { return use.impl.get() == impl; });
  return found == uses_.end() ? nullptr : found;
}

// Contents are brought back and pinned; what would be made from contents that are about to be written is
// made safe.
void InterceptedCall::begin() {
  c10::SmallVector<StorageId, 6> reads;
  c10::SmallVector<Write, 4> writes;
  c10::SmallVector<Write, 2> side_effects;
  for (Use& use : uses_) {
    if (use.role != Role::kRead) continue;
    use.number = reads.size();
    reads.push_back(use.record->id);
  }
  // The engine's inputs are numbered: what is read, then what is changed.
  std::size_t input = reads.size();
  std::size_t overwritten = 0;
  for (Use& use : uses_) {
    const StorageId id = use.record->id;
    if (use.role == Role::kChanged) {
      use.number = input++;
      writes.push_back({.storage = id, .reads_old = true});
    } else if (use.role == Role::kOverwritten) {
      use.number = overwritten++;
      writes.push_back({.storage = id, .reads_old = false});
    } else if (use.role == Role::kSideEffect) {
      side_effects.push_back({.storage = id, .reads_old = true});
    }
  }
  // To the engine an operator that changes a Source cannot be run again. With a side effect that a
  // replay leaves out it can: that part is a Call of its own.
  if (!side_effects.empty()) side_effects_ = session_.engine().begin_call({}, side_effects);
  try {
    call_ = session_.engine().begin_call(reads, writes);
  } catch (...) {
    session_.engine().abort_call(side_effects_);
    throw;
  }
}

// Where memory is used by more streams than one, somebody has to wait (Note [Streams]).
void InterceptedCall::use_on_this_stream() {
  StreamOrder& streams = *session_.streams();
  if (streams.is_home()) return;
  streams.begin_operator();
  for (const Use& use : uses_) {
    if (use.record->is_foreign) continue;
    // It may have been evicted, and have other memory now.
    if (use.role == Role::kOverwritten) {
      streams.allocated(use.record->block);
    } else {
      streams.use(use.record->block);
    }
  }
}

// Why nothing may be recorded of it.
Taint InterceptedCall::taint() const {
  if (!facts_.is_replayable) return facts_.taint;
  // While a program is traced, Python has a say in what an operator calls.
  const bool is_traced = c10::impl::PythonDispatcherTLS::get_state() != nullptr;
  if (is_opaque_ || is_traced) return Taint::kOutOfSight;
  if (has_strange_tensors_) return Taint::kStrangeTensor;
  if (reads_elsewhere_) return Taint::kForeignMemory;
  if (this_thread.unknown_depth > 0) return Taint::kOutOfSight;
  if (is_accumulating_gradient()) return Taint::kGradient;
  if (facts_.is_copy && are_copies_read()) return Taint::kReadUnseen;
  for (const Use& use : uses_) {
    if (use.role == Role::kSideEffect) continue;
    const bool is_foreign = use.record->is_foreign;
    if (!use.record->is_trusted) return is_foreign ? Taint::kForeignMemory : Taint::kUntrustedInput;
    // A foreign storage that is changed (every parameter, in every step) ends the lineage anyway.
    if (use.role == Role::kChanged && is_foreign) return Taint::kWrittenSource;
  }
  return Taint::kNone;
}

void InterceptedCall::record_arguments() {
  taint_ = taint();
  // An audit runs it again all the same.
  if (taint_ == Taint::kNone && call_.changes_source && !session_.options().audit) {
    taint_ = Taint::kWrittenSource;
  }
  if (taint_ != Taint::kNone) return;
  auto recorded = std::make_unique<RecordedCall>(op_);
  recorded->keys = below_;
  for (const c10::IValue& it : arguments_) recorded->arguments.push_back(without_tensors(it));
  for_each_tensor(
      arguments_, [&](const at::Tensor& tensor, std::size_t argument, std::int64_t element) {
        const Use* use = find_use(storage_of(tensor));
        if (use == nullptr && is_number(tensor)) {
          // A number of the program's that was made a tensor for this call alone: nobody writes it.
          put_tensor(recorded->arguments[argument], element, tensor);
          return;
        }
        if (use != nullptr && use->role == Role::kSideEffect) return;  // left out of a replay
        RecordedCall::Argument it{
            .argument = argument, .element = element, .recipe = TensorRecipe::of(tensor)};
        if (use != nullptr) {
          const bool is_fresh = use->role == Role::kOverwritten;
          it.origin = is_fresh ? RecordedCall::Origin::kOverwritten : RecordedCall::Origin::kInput;
          it.number = use->number;
        }
        recorded->tensors.push_back(std::move(it));
      });
  recorded->input_bytes.resize(call_.inputs.size());
  for (const Use& use : uses_) {
    if (use.role == Role::kOverwritten) {
      recorded->overwritten.push_back({.output = recorded->written, .bytes = use.record->bytes});
    } else if (use.role != Role::kSideEffect) {
      recorded->input_bytes[use.number] = use.record->bytes;
      if (use.record->is_foreign) recorded->kept.push_back(use.impl);
    }
    if (use.role == Role::kChanged || use.role == Role::kOverwritten) ++recorded->written;
  }
  if (facts_.is_random)
    random_ = RandomState::of(generator_among(arguments_, session_.options().device));
  recorded_ = std::move(recorded);
}

}  // namespace coop::plugin
