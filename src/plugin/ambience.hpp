#pragma once

// The state of process and thread in which an operator ran. Some of it changes an operator's bits (the
// number of threads decides in which order a sum is taken), some its type or its choice of kernel. A
// replay happens in the ambience of the first run, and gives back what it found.

#include <memory>

#include <ATen/Context.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "plugin/thread_count.hpp"

namespace coop::plugin {

struct Ambience {
  // Which keys are on and off for this thread: autograd, autocast, inference mode. Python and functorch
  // are never among them: operators under those are not recorded.
  c10::DispatchKeySet included;
  c10::DispatchKeySet excluded;
  bool grad_mode = false;
  bool inference_mode = false;
  c10::ScalarType autocast_dtype = c10::ScalarType::Undefined;
  c10::ScalarType default_dtype = c10::ScalarType::Undefined;
  int threads = 0;  // 0: it is of no matter to a GPU
  // Of float32 in oneDNN, or on the GPU. What `set_float32_matmul_precision` chooses is among them.
  at::Float32Precision conv_precision = at::Float32Precision::NONE;
  at::Float32Precision rnn_precision = at::Float32Precision::NONE;
  at::Float32Precision matmul_precision = at::Float32Precision::NONE;
  bool uses_mkldnn = false;
  bool is_mkldnn_deterministic = false;
  bool uses_nnpack = false;
  bool is_deterministic = false;
  bool is_deterministic_warn_only = false;
  bool flushes_denormals = false;
  // A GPU's. Where the budget is not for one, operators there are not run again.
  bool has_gpu = false;
  bool uses_cudnn = false;
  bool benchmarks_cudnn = false;
  bool is_cudnn_deterministic = false;
  at::CuBLASReductionOption half_reduction{};
  at::CuBLASReductionOption bfloat16_reduction{};
  bool accumulates_in_half = false;
  at::BlasBackend blas = at::BlasBackend::Default;
  at::LinalgBackend linalg = at::LinalgBackend::Default;
  bool fills_uninitialized = false;

  friend bool operator==(const Ambience&, const Ambience&) = default;

  // With what matters to operators of such a device.
  static Ambience of_this_thread(c10::DeviceType device);
  // The same, shared with the calls before it for as long as nothing changes.
  static std::shared_ptr<const Ambience> shared_of_this_thread(c10::DeviceType device);
  // Whether the calling thread has as many.
  [[nodiscard]] bool fits_threads() const { return threads == 0 || threads == thread_count(); }
  [[nodiscard]] c10::DeviceType device() const { return has_gpu ? c10::kCUDA : c10::kCPU; }
};

// Puts an ambience in place while it lives.
class AmbienceGuard {
 public:
  explicit AmbienceGuard(const Ambience& wanted);
  AmbienceGuard(const AmbienceGuard&) = delete;
  AmbienceGuard& operator=(const AmbienceGuard&) = delete;
  ~AmbienceGuard();

 private:
  Ambience before_;
  c10::impl::ForceDispatchKeyGuard keys_;
  ThreadCountGuard threads_;
  bool changes_process_;  // rare: most replays find everything as it was
};

}  // namespace coop::plugin
