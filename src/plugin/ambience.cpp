#include "plugin/ambience.hpp"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <ATen/Context.h>
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
  mixed.threads = b.threads;
  return mixed == b;
}

void set_autograd_state(const Ambience& wanted) {
  auto& state = c10::AutogradState::get_tls_state();
  state.set_grad_mode(wanted.grad_mode);
  state.set_inference_mode(wanted.inference_mode);
}

at::Float32Backend backend_of(c10::DeviceType device) {
  return device == c10::kCPU ? at::Float32Backend::MKLDNN : at::Float32Backend::CUDA;
}

// What has no precision of its own has that of all operators: we are told the outcome, not which of the two
// it is. Where both agree, none of its own is the likely one.
void set_precision(at::Float32Backend backend, at::Float32Op op, at::Float32Precision wanted) {
  using at::Float32Precision;
  at::Context& context = at::globalContext();
  const auto precision_of = [&](at::Float32Op it) { return context.float32Precision(backend, it); };
  if (precision_of(op) == wanted) return;
  const auto set = [&](Float32Precision own) { context.setFloat32Precision(backend, op, own); };
  const Float32Precision of_all = precision_of(at::Float32Op::ALL);
  if (of_all == wanted) {
    set(Float32Precision::NONE);
  } else if (wanted == Float32Precision::NONE) {
    set(Float32Precision::IEEE);  // in other words
  } else {
    set(wanted);
  }
}

void set_gpu_state(const Ambience& wanted) {
  using Reduction = at::CuBLASReductionOption;
  at::Context& context = at::globalContext();
  const auto reduces = [](Reduction it) {
    return it == Reduction::AllowReducedPrecisionWithSplitK;
  };
  const auto splits = [](Reduction it) {
    return it != Reduction::DisallowReducedPrecisionDisallowSplitK;
  };
  context.setUserEnabledCuDNN(wanted.uses_cudnn);
  context.setBenchmarkCuDNN(wanted.benchmarks_cudnn);
  context.setDeterministicCuDNN(wanted.is_cudnn_deterministic);
  context.setAllowFP16ReductionCuBLAS(reduces(wanted.half_reduction),
                                      splits(wanted.half_reduction));
  context.setAllowBF16ReductionCuBLAS(reduces(wanted.bfloat16_reduction),
                                      splits(wanted.bfloat16_reduction));
  context.setAllowFP16AccumulationCuBLAS(wanted.accumulates_in_half);
  context.setBlasPreferredBackend(wanted.blas);
  context.setLinalgPreferredBackend(wanted.linalg);
  context.setDeterministicFillUninitializedMemory(wanted.fills_uninitialized);
}

void set_process_state(const Ambience& wanted) {
  at::Context& context = at::globalContext();
  at::autocast::set_autocast_dtype(wanted.device(), wanted.autocast_dtype);
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(wanted.default_dtype));
  const at::Float32Backend backend = backend_of(wanted.device());
  set_precision(backend, at::Float32Op::CONV, wanted.conv_precision);
  set_precision(backend, at::Float32Op::RNN, wanted.rnn_precision);
  set_precision(backend, at::Float32Op::MATMUL, wanted.matmul_precision);
  context.setUserEnabledMkldnn(wanted.uses_mkldnn);
  context.setDeterministicMkldnn(wanted.is_mkldnn_deterministic);
  context.setUserEnabledNNPACK(wanted.uses_nnpack);
  context.setDeterministicAlgorithms(wanted.is_deterministic, wanted.is_deterministic_warn_only);
  at::Context::setFlushDenormal(wanted.flushes_denormals);
  if (wanted.has_gpu) set_gpu_state(wanted);
}

}  // namespace

Ambience Ambience::of_this_thread(c10::DeviceType device) {
  at::Context& context = at::globalContext();
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  const auto& autograd = c10::AutogradState::get_tls_state();
  const auto precision_of = [&](at::Float32Op op) {
    return context.float32Precision(backend_of(device), op);
  };
  Ambience now{
      .included = keys.included_,
      .excluded = keys.excluded_,
      .grad_mode = autograd.get_grad_mode(),
      .inference_mode = autograd.get_inference_mode(),
      .autocast_dtype = at::autocast::get_autocast_dtype(device),
      .default_dtype = c10::typeMetaToScalarType(c10::get_default_dtype()),
      .threads = device == c10::kCPU ? thread_count() : 0,
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
  if (device == c10::kCPU) return now;
  now.has_gpu = true;
  now.uses_cudnn = context.userEnabledCuDNN();
  now.benchmarks_cudnn = context.benchmarkCuDNN();
  now.is_cudnn_deterministic = context.deterministicCuDNN();
  now.half_reduction = context.allowFP16ReductionCuBLAS();
  now.bfloat16_reduction = context.allowBF16ReductionCuBLAS();
  now.accumulates_in_half = context.allowFP16AccumulationCuBLAS();
  now.blas = context.blasPreferredBackend();
  now.linalg = context.linalgPreferredBackend();
  now.fills_uninitialized = context.deterministicFillUninitializedMemory();
  return now;
}

std::shared_ptr<const Ambience> Ambience::shared_of_this_thread(c10::DeviceType device) {
  thread_local std::shared_ptr<const Ambience> last;
  const Ambience now = of_this_thread(device);
  if (!last || !(*last == now)) last = std::make_shared<const Ambience>(now);
  return last;
}

AmbienceGuard::AmbienceGuard(const Ambience& wanted)
    : before_(Ambience::of_this_thread(wanted.device())),
      keys_(wanted.included, wanted.excluded),
      threads_(wanted.threads),
      changes_process_(!is_process_alike(before_, wanted)) {
  set_autograd_state(wanted);
  if (changes_process_) set_process_state(wanted);
}

AmbienceGuard::~AmbienceGuard() {
  set_autograd_state(before_);
  if (changes_process_) set_process_state(before_);
}

}  // namespace coop::plugin
