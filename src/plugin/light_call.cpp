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

struct Use {
  bool is_written = false;
  bool is_template = false;
  bool at_ease = false;
};

bool is_light(Session& session, const at::Tensor& tensor, const Use& use) {
  if (!tensor.defined()) return true;
  if (is_strange(tensor)) return false;
  if (use.is_template && !use.is_written) return true;
  if (!use.is_written && tensor.unsafeGetTensorImpl()->is_wrapped_number()) return true;
  return session.is_light(storage_of(tensor), use.is_written, use.at_ease);
}

bool are_light(Session& session, const OperatorFacts& facts, bool at_ease,
               std::span<const c10::IValue> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& it = arguments[i];
    Use use{.is_written = facts.writes[i] || facts.is_side_effect(i), .at_ease = at_ease};
    if (it.isTensor()) {
      use.is_template = facts.has_template && i == 0;
      if (!is_light(session, it.toTensor(), use)) return false;
    } else if (it.isTensorList() || it.isOptionalTensorList()) {
      for (const c10::IValue& element : it.toListRef()) {
        if (element.isTensor() && !is_light(session, element.toTensor(), use)) return false;
      }
    } else if (!is_transparent(it)) {
      return false;
    }
  }
  return true;
}

// How many bytes it has made or written; none if the engine has to know of them.
std::optional<std::size_t> unheard_bytes(Session& session, bool at_ease,
                                         std::span<const c10::IValue> results) {
  std::size_t bytes = 0;
  const auto add = [&](const at::Tensor& made) {
    if (!made.defined()) return true;
    if (is_strange(made)) return false;
    const std::size_t in_storage = storage_of(made).nbytes();
    bytes += in_storage;
    if (!session.is_large(in_storage)) return true;
    if (at_ease) session.note_owner(storage_of(made));
    return at_ease;
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

// On another stream somebody may have to wait (Note [Streams]).
bool is_at_ease(Session& session) {
  return session.is_at_ease() && (session.streams() == nullptr || session.streams()->is_home());
}

// False if it was refused memory at ease, and can be begun anew: with the arguments, as if nothing had been.
bool run(Session& session, const c10::OperatorHandle& op, const OperatorFacts& facts, bool at_ease,
         c10::DispatchKeySet below, torch::jit::Stack& stack) {
  const ExpectedCost expected(facts.last_cost.load(std::memory_order_relaxed));
  const c10::impl::ExcludeDispatchKeyGuard once(kOurKeys);
  const TurnToDraw turn = session.turn_to_draw(facts.is_random);
  const Unheard unheard(at_ease);
  if (!at_ease || !facts.only_makes || this_thread.no_room != nullptr) {
    redispatch_or_refuse(session, op, below, stack);
    return true;
  }
  std::optional<MemoryReport> no_room;
  try {
    const FirstTry first(no_room);
    redispatch_or_refuse(session, op, below, stack);
    return true;
  } catch (const c10::OutOfMemoryError&) {
    if (!no_room) throw;
    return false;
  }
}

}  // namespace

bool is_light_at_ease(Session& session, const OperatorFacts& facts,
                      const torch::jit::Stack& stack) {
  if (!facts.may_be_unheard || !session.takes_light_calls() || !is_at_ease(session)) return false;
  const auto arguments = std::span<const c10::IValue>(stack).last(facts.arguments);
  return with_torch_errors([&] { return are_light(session, facts, true, arguments); });
}

bool run_if_light(Session& session, const c10::OperatorHandle& op, const OperatorFacts& facts,
                  c10::DispatchKeySet below, torch::jit::Stack& stack) {
  if (!facts.may_be_unheard || !session.takes_light_calls()) return false;
  const bool at_ease = is_at_ease(session);
  if (!at_ease && !facts.may_be_light) return false;
  const Running running(op);
  const auto arguments = std::span<const c10::IValue>(stack).last(facts.arguments);
  if (!with_torch_errors([&] { return are_light(session, facts, at_ease, arguments); }))
    return false;
  session.count_light_operator();
  const c10::SmallVector<c10::IValue, 8> kept(arguments.begin(), arguments.end());
  std::optional<OperatorTimes::Start> start;
  if (!at_ease) start = session.times().begin(0);
  const std::size_t under = stack.size() - kept.size();
  if (!run(session, op, facts, at_ease, below, stack)) {
    stack.resize(under);
    stack.insert(stack.end(), kept.begin(), kept.end());
    return false;
  }
  const auto bytes =
      unheard_bytes(session, at_ease, std::span<const c10::IValue>(stack).last(facts.results));
  if (!bytes) {
    if (!start) start = session.times().begin(0);
    InterceptedCall(session, op, facts, below, stack, kept).note_that_it_ran(*start);
    return true;
  }
  if (at_ease) return true;
  session.made().add(facts.is_replayable ? Taint::kSmall : facts.taint, *bytes);
  if (this_thread.unknown_depth == 0) session.between_operators();
  return true;
}

}  // namespace coop::plugin
