#include "plugin/ambience.hpp"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>

namespace coop::plugin {
namespace {

bool flushes_denormals_now() {
#ifdef __SSE__
  constexpr unsigned kFlushToZero =
      0x8000;  // what Context::setFlushDenormal sets, and nobody reads
  return (_mm_getcsr() & kFlushToZero) != 0;
#else
  return false;
#endif
}

// What only a whole process has, or what is slow to set: compared before it is touched.
bool is_process_alike(const Ambience& a, const Ambience& b) {
  Ambience mixed = a;
  mixed.included = b.included;
  mixed.excluded = b.excluded;
  mixed.grad_mode = b.grad_mode;
  mixed.inference_mode = b.inference_mode;
  return mixed == b;
}

void set_autograd_state(const Ambience& wanted) {
  auto& state = c10::AutogradState::get_tls_state();
  state.set_grad_mode(wanted.grad_mode);
  state.set_inference_mode(wanted.inference_mode);
}

at::Float32Precision precision_of(at::Float32Op op) {
  return at::globalContext().float32Precision(at::Float32Backend::MKLDNN, op);
}

// What has no precision of its own has that of all operators: we are told the outcome, not which of the two
// it is. Where both agree, none of its own is the likely one.
void set_precision(at::Float32Op op, at::Float32Precision wanted) {
  using at::Float32Precision;
  if (precision_of(op) == wanted) return;
  const auto set = [&](Float32Precision own) {
    at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, op, own);
  };
  const Float32Precision of_all = precision_of(at::Float32Op::ALL);
  if (of_all == wanted) {
    set(Float32Precision::NONE);
  } else if (wanted == Float32Precision::NONE) {
    set(Float32Precision::IEEE);  // in other words
  } else {
    set(wanted);
  }
}

void set_process_state(const Ambience& wanted) {
  at::Context& context = at::globalContext();
  if (at::get_num_threads() != wanted.threads) at::set_num_threads(wanted.threads);
  at::autocast::set_autocast_dtype(at::kCPU, wanted.autocast_dtype);
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(wanted.default_dtype));
  set_precision(at::Float32Op::CONV, wanted.conv_precision);
  set_precision(at::Float32Op::RNN, wanted.rnn_precision);
  set_precision(at::Float32Op::MATMUL, wanted.matmul_precision);
  context.setUserEnabledMkldnn(wanted.uses_mkldnn);
  context.setDeterministicMkldnn(wanted.is_mkldnn_deterministic);
  context.setUserEnabledNNPACK(wanted.uses_nnpack);
  context.setDeterministicAlgorithms(wanted.is_deterministic, wanted.is_deterministic_warn_only);
  at::Context::setFlushDenormal(wanted.flushes_denormals);
}

}  // namespace

Ambience Ambience::of_this_thread() {
  const at::Context& context = at::globalContext();
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  const auto& autograd = c10::AutogradState::get_tls_state();
  return {
      .included = keys.included_,
      .excluded = keys.excluded_,
      .grad_mode = autograd.get_grad_mode(),
      .inference_mode = autograd.get_inference_mode(),
      .autocast_dtype = at::autocast::get_autocast_dtype(at::kCPU),
      .default_dtype = c10::typeMetaToScalarType(c10::get_default_dtype()),
      .threads = at::get_num_threads(),
      .conv_precision = precision_of(at::Float32Op::CONV),
      .rnn_precision = precision_of(at::Float32Op::RNN),
      .matmul_precision = precision_of(at::Float32Op::MATMUL),
      .uses_mkldnn = context.userEnabledMkldnn(),
      .is_mkldnn_deterministic = context.deterministicMkldnn(),
      .uses_nnpack = context.userEnabledNNPACK(),
      .is_deterministic = context.deterministicAlgorithms(),
      .is_deterministic_warn_only = context.deterministicAlgorithmsWarnOnly(),
      .flushes_denormals = flushes_denormals_now(),
  };
}

std::shared_ptr<const Ambience> Ambience::shared_of_this_thread() {
  thread_local std::shared_ptr<const Ambience> last;
  const Ambience now = of_this_thread();
  if (!last || !(*last == now)) last = std::make_shared<const Ambience>(now);
  return last;
}

AmbienceGuard::AmbienceGuard(const Ambience& wanted)
    : before_(Ambience::of_this_thread()),
      keys_(wanted.included, wanted.excluded),
      changes_process_(!is_process_alike(before_, wanted)) {
  set_autograd_state(wanted);
  if (changes_process_) set_process_state(wanted);
}

AmbienceGuard::~AmbienceGuard() {
  set_autograd_state(before_);
  if (changes_process_) set_process_state(before_);
}

}  // namespace coop::plugin
