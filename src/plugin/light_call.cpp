#include "plugin/light_call.hpp"

#include <optional>
#include <span>

#include <c10/util/SmallVector.h>

#include "plugin/dispatch_key.hpp"
#include "plugin/intercepted_call.hpp"
#include "plugin/recorded_call.hpp"
#include "plugin/tensor_parts.hpp"

namespace coop::plugin {
namespace {

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  return *tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

bool is_light(Session& session, const at::Tensor& tensor, bool is_written, bool is_template) {
  if (!tensor.defined()) return true;
  if (is_strange(tensor)) return false;
  if (is_template && !is_written) return true;
  if (!is_written && tensor.unsafeGetTensorImpl()->is_wrapped_number()) return true;
  return session.is_light(storage_of(tensor), is_written);
}

bool are_light(Session& session, const OperatorFacts& facts,
               std::span<const c10::IValue> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& it = arguments[i];
    const bool is_written = facts.writes[i] || facts.is_side_effect(i);
    const bool is_template = facts.has_template && i == 0;
    if (it.isTensor()) {
      if (!is_light(session, it.toTensor(), is_written, is_template)) return false;
    } else if (it.isTensorList() || it.isOptionalTensorList()) {
      for (const c10::IValue& element : it.toListRef()) {
        const bool is_there = element.isTensor();
        if (is_there && !is_light(session, element.toTensor(), is_written, false)) return false;
      }
    } else if (!is_transparent(it)) {
      return false;
    }
  }
  return true;
}

// How many bytes it has made or written; none if the engine has to know of them.
std::optional<std::size_t> small_bytes(const Session& session,
                                       std::span<const c10::IValue> results) {
  std::size_t bytes = 0;
  const auto add = [&](const at::Tensor& made) {
    if (!made.defined()) return true;
    if (is_strange(made)) return false;
    const std::size_t in_storage = storage_of(made).nbytes();
    bytes += in_storage;
    return !session.is_large(in_storage);
  };
  for (const c10::IValue& it : results) {
    if (it.isTensor()) {
      if (!add(it.toTensor())) return std::nullopt;
    } else if (it.isTensorList()) {
      for (const c10::IValue& element : it.toListRef()) {
        if (!add(element.toTensor())) return std::nullopt;
      }
    } else if (!is_transparent(it)) {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace

bool run_if_light(Session& session, const c10::OperatorHandle& op, const OperatorFacts& facts,
                  c10::DispatchKeySet below, torch::jit::Stack& stack) {
  if (!facts.may_be_light || !session.takes_light_calls()) return false;
  const Running running(op);
  const auto arguments = std::span<const c10::IValue>(stack).last(facts.arguments);
  if (!with_torch_errors([&] { return are_light(session, facts, arguments); })) return false;
  session.count_light_operator();
  const c10::SmallVector<c10::IValue, 8> kept(arguments.begin(), arguments.end());
  const OperatorTimes::Start start = session.times().begin(0);
  {
    const ExpectedCost expected(facts.last_cost.load(std::memory_order_relaxed));
    const c10::impl::ExcludeDispatchKeyGuard once(kOurKeys);
    op.redispatchBoxed(below, &stack);
  }
  const auto bytes = small_bytes(session, std::span<const c10::IValue>(stack).last(facts.results));
  if (!bytes) {
    InterceptedCall(session, op, facts, below, stack, kept).note_that_it_ran(start);
    return true;
  }
  session.count_operator();
  session.made().add(facts.is_replayable ? Taint::kSmall : facts.taint, *bytes);
  if (this_thread.unknown_depth == 0) session.between_operators();
  return true;
}

}  // namespace coop::plugin
