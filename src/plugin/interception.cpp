#include "plugin/interception.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "plugin/audit.hpp"
#include "plugin/call_of_several.hpp"
#include "plugin/captured.hpp"
#include "plugin/concerned.hpp"
#include "plugin/dispatch_key.hpp"
#include "plugin/gradients.hpp"
#include "plugin/intercepted_call.hpp"
#include "plugin/light_call.hpp"
#include "plugin/operator_facts.hpp"
#include "plugin/session.hpp"
#include "plugin/tensor_parts.hpp"

namespace coop::plugin {
namespace {

using Kind = OperatorFacts::Kind;

// Operators that came through on this thread, while somebody wants to know.
struct Watched {
  std::vector<std::string> names;
  std::vector<std::int64_t> failing;
  bool was_in_scope = is_thread_in_scope();

  void note(const c10::OperatorHandle& op) {
    if (op.operator_name().getNamespace() == "coop") return;
    const auto number = static_cast<std::int64_t>(names.size());
    names.push_back(toString(op.operator_name()));
    const bool fails = std::find(failing.begin(), failing.end(), number) != failing.end();
    TORCH_CHECK_WITH(OutOfMemoryError, !fails, "coop: ", names.back(), " is to fail");
  }
};
constinit thread_local Watched* watched = nullptr;  // every operator asks

void pass_on(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(kOurKeys);
  op.redispatchBoxed(below, stack);
}

void end_lineage_of(Session& session, const c10::OperatorHandle& op,
                    const torch::jit::Stack& stack) {
  const auto arguments = std::span(stack).last(op.schema().arguments().size());
  for_each_tensor(arguments, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    if (!tensor.has_storage()) return;
    c10::StorageImpl& impl = *tensor.storage().unsafeGetStorageImpl();
    if (StorageRecord* record = session.record_of(impl)) session.note_gradient(*record);
    session.end_lineage(impl);
  });
}

// It neither reads nor writes contents, we say.
void audit_view(Session& session, const c10::OperatorHandle& op, c10::DispatchKeySet below,
                torch::jit::Stack* stack) {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> kept;
  std::vector<Audit::Use> uses;
  const auto arguments = std::span<const c10::IValue>(*stack).last(op.schema().arguments().size());
  for_each_tensor(arguments, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    for_each_part(tensor, [&](const at::Tensor& part) {
      if (!part.device().is_cpu() || part.storage().data() == nullptr) return;
      kept.push_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
          part.storage().unsafeGetStorageImpl()));
      uses.push_back({.impl = kept.back().get()});
    });
  });
  Audit audit(std::move(uses));
  pass_on(op, below, stack);
  audit.look({}, false);
  session.findings().add(op, audit.findings());
}

// An operator that has to do with one budget alone.
void handle_for(Session& session, const c10::OperatorHandle& op, const OperatorFacts& facts,
                c10::DispatchKeySet below, torch::jit::Stack* stack) {
  const bool is_opaque = facts.kind == Kind::kUnknown || is_handled_out_of_sight(below);
  if (!is_opaque && facts.kind == Kind::kView) {
    // A new gradient becomes the parameter's by being detached from its own history, in both senses.
    if (!session.is_at_ease() && is_accumulating_gradient()) {
      const Running running(op);
      with_torch_errors([&] { end_lineage_of(session, op, *stack); });
    }
    if (session.options().audit) return audit_view(session, op, below, stack);
    return pass_on(op, below, stack);
  }
  if (!is_opaque && facts.kind == Kind::kComposite) {
    if (facts.raw_reader == nullptr) return op.redispatchBoxed(below, stack);
    return run_with_contents(*facts.raw_reader, op, stack, below);
  }
  if (is_captured(session)) return run_captured(std::array{&session}, op, below, *stack);
  if (facts.multiplies_matrices && below.has_backend(c10::BackendComponent::CUDABit)) {
    session.settle_workspace();
  }
  if (!is_opaque && run_if_light(session, op, facts, below, *stack)) return;
  InterceptedCall(session, op, facts, below, *stack, is_opaque).run();
}

void handle_among_several(const CurrentSession& inside, const c10::OperatorHandle& op,
                          const OperatorFacts& facts, c10::DispatchKeySet below,
                          torch::jit::Stack* stack) {
  const Concerned concerned = concerned_by(
      inside, std::span<const c10::IValue>(*stack).last(op.schema().arguments().size()));
  const std::span<Session* const> sessions(concerned.data(), concerned.size());
  // Views and those that others are called for are of one, as far as anything is done about them.
  const bool is_opaque = facts.kind == Kind::kUnknown || is_handled_out_of_sight(below);
  const bool passes = !is_opaque && (facts.kind == Kind::kView || facts.kind == Kind::kComposite);
  if (sessions.size() == 1 || passes) return handle_for(*sessions[0], op, facts, below, stack);
  const bool is_in_graph = std::any_of(sessions.begin(), sessions.end(),
                                       [](Session* session) { return is_captured(*session); });
  if (is_in_graph) return run_captured(sessions, op, below, *stack);
  CallOfSeveral(op, facts, below, *stack, is_opaque).run(sessions);
}

void handle(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  if (watched) watched->note(op);
  if (Session::active() == nullptr) return pass_on(op, below, stack);
  const OperatorFacts& facts = facts_of(op);
  if (facts.kind == Kind::kOurs) return pass_on(op, below, stack);
  const CurrentSession session;
  if (!session) return pass_on(op, below, stack);
  // Python code handles it, and calls others for it, which we see.
  if (below.has(c10::DispatchKey::Python)) return op.redispatchBoxed(below, stack);

  if (session->has_older()) return handle_among_several(session, op, facts, below, stack);
  handle_for(*session, op, facts, below, stack);
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

void begin_watching(std::vector<std::int64_t> failing) {
  TORCH_CHECK(watched == nullptr, "coop: the operators of this thread are watched already");
  watched = new Watched;  // NOLINT(cppcoreguidelines-owning-memory)
  watched->failing = std::move(failing);
  put_thread_in_scope(true);
}

std::vector<std::string> end_watching() {
  TORCH_CHECK(watched != nullptr, "coop: nobody watches the operators of this thread");
  const std::unique_ptr<Watched> over(std::exchange(watched, nullptr));
  put_thread_in_scope(over->was_in_scope);
  return over->names;
}

// Python proves more (_self_test.py); this is what holds without it.
void prove_interception() {
  const at::Tensor x = at::ones({2}).set_requires_grad(true);
  const at::Tensor gradient = at::ones({2});
  begin_watching({});
  const at::Tensor y = at::mul(x, x);
  const std::vector<std::string> forward = end_watching();
  begin_watching({});
  y.backward(gradient);
  const std::vector<std::string> backward = end_watching();
  // Two products and their sum, besides a view here and there.
  constexpr std::size_t kBackward = 3;
  TORCH_CHECK(forward.size() == 1 && backward.size() >= kBackward,
              "coop does not see PyTorch's operators (", forward.size(), " of 1 forward, ",
              backward.size(),
              " of 3 or more backward): this version of PyTorch is not supported, or other code "
              "has taken its place in the dispatcher");
}

}  // namespace coop::plugin
