#include "plugin/interception.hpp"

#include <span>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include "plugin/dispatch_key.hpp"
#include "plugin/gradients.hpp"
#include "plugin/intercepted_call.hpp"
#include "plugin/operator_facts.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

using Kind = OperatorFacts::Kind;

// How many operators came through on this thread while it was proved that they do.
thread_local int* seen = nullptr;

void pass_on(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  op.redispatchBoxed(below, stack);
}

void end_lineage_of(Session& session, const c10::OperatorHandle& op,
                    const torch::jit::Stack& stack) {
  const auto arguments = std::span(stack).last(op.schema().arguments().size());
  for_each_tensor(arguments, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    if (tensor.has_storage()) session.end_lineage(*tensor.storage().unsafeGetStorageImpl());
  });
}

}  // namespace

void intercept(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys_below(keys);
  if (seen != nullptr) ++*seen;
  Session* session = Session::current();
  if (session == nullptr) return pass_on(op, below, stack);

  const OperatorFacts& facts = facts_of(op);
  const bool is_opaque = facts.kind == Kind::kUnknown || is_handled_out_of_sight(below);
  if (facts.kind == Kind::kOurs) return pass_on(op, below, stack);
  if (!is_opaque && facts.kind == Kind::kView) {
    // A new gradient becomes the parameter's by being detached from its own history, in both senses.
    if (is_accumulating_gradient()) end_lineage_of(*session, op, *stack);
    return pass_on(op, below, stack);
  }
  if (!is_opaque && facts.kind == Kind::kComposite) return op.redispatchBoxed(below, stack);
  InterceptedCall(*session, op, facts, below, *stack, is_opaque).run();
}

void prove_interception() {
  struct Counting {
    explicit Counting(int& count) {
      seen = &count;
      c10::impl::tls_set_dispatch_key_included(kKey, true);
    }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
    ~Counting() {
      seen = nullptr;
      c10::impl::tls_set_dispatch_key_included(kKey, false);
    }
  };
  const at::Tensor x = at::ones({2}).set_requires_grad(true);
  int forward = 0;
  int backward = 0;
  at::Tensor y;
  {
    const Counting counting(forward);
    y = at::mul(x, x);
  }
  {
    const Counting counting(backward);
    y.backward(at::ones({2}));
  }
  // mul; then ones, two products and their sum, besides a view here and there.
  TORCH_CHECK(forward == 1 && backward >= 4, "coop does not see PyTorch's operators (", forward,
              " of 1 forward, ", backward,
              " of 4 or more backward): this version of PyTorch is not "
              "supported, or other code has taken its place in the dispatcher");
}

}  // namespace coop::plugin
