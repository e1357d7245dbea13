#include "plugin/interception.hpp"

#include <span>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

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
  const c10::impl::ExcludeDispatchKeyGuard once(kOurKeys);
  op.redispatchBoxed(below, stack);
}

void end_lineage_of(Session& session, const c10::OperatorHandle& op,
                    const torch::jit::Stack& stack) {
  const auto arguments = std::span(stack).last(op.schema().arguments().size());
  for_each_tensor(arguments, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    if (tensor.has_storage()) session.end_lineage(*tensor.storage().unsafeGetStorageImpl());
  });
}

void handle(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  if (seen != nullptr) ++*seen;
  if (Session::active() == nullptr) return pass_on(op, below, stack);
  const OperatorFacts& facts = facts_of(op);
  if (facts.kind == Kind::kOurs) return pass_on(op, below, stack);
  const CurrentSession session;
  if (!session) return pass_on(op, below, stack);
  // Python code handles it, and calls others for it, which we see.
  if (below.has(c10::DispatchKey::Python)) return op.redispatchBoxed(below, stack);

  const bool is_opaque = facts.kind == Kind::kUnknown || is_handled_out_of_sight(below);
  if (!is_opaque && facts.kind == Kind::kView) {
    // A new gradient becomes the parameter's by being detached from its own history, in both senses.
    if (is_accumulating_gradient()) end_lineage_of(*session, op, *stack);
    return pass_on(op, below, stack);
  }
  if (!is_opaque && facts.kind == Kind::kComposite) {
    if (facts.raw_reader == nullptr) return op.redispatchBoxed(below, stack);
    return run_with_contents(*facts.raw_reader, op, stack, below);
  }
  InterceptedCall(*session, op, facts, below, *stack, is_opaque).run();
}

void intercept_inner(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  handle(op, keys_below(keys, kKeyBelowPython), stack);
}

// To PyTorch the key is a backend's: where an operator has a kernel for any backend, that would be taken
// for our key, instead of the fallback and the CPU's own kernel.
bool has_kernel_for_any_backend(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

}  // namespace

void intercept(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  handle(op, keys_below(keys, kKey), stack);
}

void intercept_below_python() {
  if (!kIsPythonBelowUs) return;
  using torch::CppFunction;
  using torch::Library;
  // For ever, like the operators.
  static auto& all = *new Library(Library::IMPL, "_", kKeyBelowPython, __FILE__, __LINE__);
  static auto& each = *new Library(Library::IMPL, "aten", kKeyBelowPython, __FILE__, __LINE__);
  all.fallback(CppFunction::makeFromBoxedFunction<&intercept_inner>());
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || name.getNamespace() != "aten" || !has_kernel_for_any_backend(*op)) continue;
    each.impl(toString(name).c_str(), CppFunction::makeFromBoxedFunction<&intercept_inner>());
  }
}

void prove_interception() {
  struct Counting {
    explicit Counting(int& count) {
      seen = &count;
      put_thread_in_scope(true);
    }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
    ~Counting() {
      seen = nullptr;
      put_thread_in_scope(false);
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
