#include "plugin/cuda/cuda_times.hpp"

#include <algorithm>
#include <thread>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include "core/engine/engine.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

// A launch takes that long, whatever it does.
constexpr double kLeastNs = 4000;
// Of an operator of which nothing is known yet, and which is not measured.
constexpr double kUnknownNs = 10000;
constexpr std::uint32_t kRuns = 4;
constexpr std::uint64_t kLongestHoldNs = 500'000;
constexpr std::size_t kMostPending = 4096;
constexpr std::size_t kMostKinds = std::size_t{1} << 16U;

}  // namespace

CudaTimes::~CudaTimes() {
  const c10::cuda::CUDAGuard guard(device_);
  static_cast<void>(cudaDeviceSynchronize());  // nobody is held any more
  for (const Measurement& it : measurements_) {
    static_cast<void>(cudaEventDestroy(it.begin));
    static_cast<void>(cudaEventDestroy(it.end));
  }
}

OperatorTimes::Start CudaTimes::begin(std::uint64_t kind) {
  Start start{.kind = kind};
  if (kind == 0) return start;
  const std::scoped_lock lock(mutex_);
  if (kinds_.size() >= kMostKinds && !kinds_.contains(kind)) {
    kinds_.clear();
    has_forgotten_ = true;
  }
  Kind& known = kinds_[kind];
  if (known.runs >= kRuns || pending_.size() >= kMostPending) return start;
  // Events are of the device on which they were made, and the default stream is whichever device's is the current one.
  const c10::cuda::CUDAGuard guard(device_);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device_).stream();
  start.measurement = take();
  start.is_first = known.runs++ == 0;
  Measurement& it = measurement(start.measurement);
  it.kind = kind;
  it.may_go.store(false);
  static_cast<void>(cudaLaunchHostFunc(stream, &hold_gpu, &it));
  static_cast<void>(cudaEventRecord(it.begin, stream));
  start.memory_ns = this_thread.memory_ns;
  start.clock_ns = steady_clock_ns();
  return start;
}

// On a thread of CUDA's, which must not call CUDA.
void CudaTimes::hold_gpu(void* measurement) {
  const std::atomic<bool>& may_go = static_cast<Measurement*>(measurement)->may_go;
  const std::uint64_t began = steady_clock_ns();
  while (!may_go.load(std::memory_order_relaxed) && steady_clock_ns() - began < kLongestHoldNs) {
    std::this_thread::yield();
  }
}

double CudaTimes::end(const Start& start) {
  const std::scoped_lock lock(mutex_);
  if (start.measurement >= 0) {
    const c10::cuda::CUDAGuard guard(device_);
    Measurement& it = measurement(start.measurement);
    const std::uint64_t spent_on_memory = this_thread.memory_ns - start.memory_ns;
    it.host_ns = static_cast<double>(steady_clock_ns() - start.clock_ns - spent_on_memory);
    static_cast<void>(cudaEventRecord(it.end, c10::cuda::getCurrentCUDAStream(device_).stream()));
    it.may_go.store(true);
    if (start.is_first) {
      static_cast<void>(cudaEventSynchronize(it.end));
      note(it);
      free_.push_back(start.measurement);
    } else {
      pending_.push_back(start.measurement);
    }
  }
  if (!pending_.empty()) look_at_those_that_are_over();
  return ended(start.kind);
}

double CudaTimes::end_as(std::uint64_t kind, const Start& /*start*/) {
  const std::scoped_lock lock(mutex_);
  return ended(kind);
}

// What it costs, as far as is known.
double CudaTimes::ended(std::uint64_t kind) {
  if (kind == 0) return kUnknownNs;
  Kind& known = kinds_[kind];
  known.has_ended = true;
  return known.runs == 0 ? kUnknownNs : known.cost();
}

bool CudaTimes::has_seen(std::uint64_t kind) {
  const std::scoped_lock lock(mutex_);
  const auto found = kinds_.find(kind);
  return has_forgotten_ || (found != kinds_.end() && found->second.has_ended);
}

void CudaTimes::drop(const Start& start) noexcept {
  if (start.measurement < 0) return;
  const std::scoped_lock lock(mutex_);
  Measurement& it = measurement(start.measurement);
  it.may_go.store(true);
  // The GPU may still be about to look at it. It is not used again.
}

int CudaTimes::take() {
  if (free_.empty()) {
    Measurement& it = measurements_.emplace_back();
    C10_CUDA_CHECK(cudaEventCreate(&it.begin));
    C10_CUDA_CHECK(cudaEventCreate(&it.end));
    return static_cast<int>(measurements_.size()) - 1;
  }
  const int number = free_.back();
  free_.pop_back();
  return number;
}

// In the order in which they were enqueued: where one is not over, the later ones are hardly.
void CudaTimes::look_at_those_that_are_over() {
  std::size_t over = 0;
  for (; over < pending_.size(); ++over) {
    const Measurement& it = measurement(pending_[over]);
    if (cudaEventQuery(it.end) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // whoever looks for errors next is not to find this
      break;
    }
    note(it);
    free_.push_back(pending_[over]);
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(over));
}

void CudaTimes::note(const Measurement& measurement) {
  float ms = 0;
  if (cudaEventElapsedTime(&ms, measurement.begin, measurement.end) != cudaSuccess) return;
  const double took = std::max(1e6 * static_cast<double>(ms), kLeastNs);
  Kind& kind = kinds_[measurement.kind];
  kind.least_host_ns =
      std::min(kind.least_host_ns.value_or(measurement.host_ns), measurement.host_ns);
  const auto longest_hold = static_cast<double>(kLongestHoldNs);
  if (measurement.host_ns < longest_hold) {
    kind.least_ns = std::min(kind.least_ns.value_or(took), took);
  } else {
    const double beyond = measurement.host_ns - longest_hold;
    kind.guess_ns = std::max({kind.guess_ns, took - beyond, kLeastNs});
  }
}

}  // namespace coop::plugin
