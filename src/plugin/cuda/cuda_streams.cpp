#include "plugin/cuda/cuda_streams.hpp"

#include <algorithm>
#include <utility>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

namespace coop::plugin {
namespace {

bool is_captured(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  static_cast<void>(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

CudaStreams::CudaStreams(c10::DeviceIndex device) : device_(device) {
  const c10::cuda::CUDAGuard guard(device);
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

CudaStreams::~CudaStreams() { static_cast<void>(cudaEventDestroy(event_)); }

cudaStream_t CudaStreams::current() const {
  return c10::cuda::getCurrentCUDAStream(device_).stream();
}

bool CudaStreams::is_capturing() const { return is_captured(current()); }

bool CudaStreams::is_home() const {
  return !has_home_.load(std::memory_order_acquire) ||
         current() == home_.load(std::memory_order_relaxed);
}

// --- what other streams do ---

void CudaStreams::allocated(BlockId block) {
  if (is_home()) {
    if (!has_home_.load(std::memory_order_acquire)) choose_home();
    return;
  }
  const cudaStream_t stream = current();
  const std::scoped_lock lock(mutex_);
  // Whoever had the memory before was done with it on home, or home waited for it.
  wait(stream, home_);
  const std::size_t number = number_of(stream);
  others_[number].has_seen = work_;
  mark(block, number);
}

// The first that asks for memory. It stays: whoever has found that he is at home must not be mistaken.
void CudaStreams::choose_home() {
  const std::scoped_lock lock(mutex_);
  if (has_home_) return;
  home_ = current();
  has_home_.store(true, std::memory_order_release);
}

void CudaStreams::begin_operator() {
  const std::scoped_lock lock(mutex_);
  const cudaStream_t stream = current();
  if (stream == home_) return;
  const std::size_t number = number_of(stream);
  if (others_[number].has_seen == work_) return;
  wait(stream, home_);
  others_[number].has_seen = work_;
}

void CudaStreams::use(BlockId block) {
  use_on(block, c10::cuda::getCurrentCUDAStream(device_).unwrap());
}

void CudaStreams::use_on(BlockId block, c10::Stream stream) {
  const cudaStream_t handle = c10::cuda::CUDAStream(stream).stream();
  const std::scoped_lock lock(mutex_);
  if (!has_home_ || handle == home_ || !block) return;
  mark(block, number_of(handle));
}

std::size_t CudaStreams::number_of(cudaStream_t stream) {
  const auto found = std::find_if(others_.begin(), others_.end(),
                                  [&](const Other& it) { return it.stream == stream; });
  if (found != others_.end()) return static_cast<std::size_t>(found - others_.begin());
  if (others_.size() < kMost) {
    others_.push_back({.stream = stream});
    return others_.size() - 1;
  }
  // More streams than marks: whoever had the last one is waited for, and gives it up.
  constexpr std::size_t kLast = kMost - 1;
  wait(home_, others_[kLast].stream);
  for (Marks& marks : marks_) marks &= ~(Marks{1} << kLast);
  others_[kLast] = {.stream = stream};
  return kLast;
}

void CudaStreams::mark(BlockId block, std::size_t number) {
  if (marks_.size() <= block.index()) marks_.resize(std::size_t{block.index()} + 1);
  marks_[block.index()] |= Marks{1} << number;
  has_marks_ = true;
}

// --- what the engine does ---

class CudaStreams::Guard final : public AtHome {
 public:
  Guard(CudaStreams& streams, c10::cuda::CUDAStream home) : streams_(streams), guard_(home) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() override {
    const std::scoped_lock lock(streams_.mutex_);
    ++streams_.work_;
  }

 private:
  CudaStreams& streams_;
  c10::cuda::CUDAStreamGuard guard_;
};

std::unique_ptr<StreamOrder::AtHome> CudaStreams::at_home() {
  const c10::cuda::CUDAStream now = c10::cuda::getCurrentCUDAStream(device_);
  if (!has_home_) choose_home();
  const cudaStream_t home = home_;
  const bool is_there = now.stream() == home;
  return std::make_unique<Guard>(*this,
                                 is_there ? now : c10::cuda::getStreamFromExternal(home, device_));
}

void CudaStreams::await(BlockId block) noexcept {
  if (!has_marks_.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(mutex_);
  if (block.index() < marks_.size()) await_marked(marks_[block.index()]);
}

void CudaStreams::await_all() noexcept {
  const std::scoped_lock lock(mutex_);
  for (const Other& other : others_) wait(home_, other.stream);
  std::fill(marks_.begin(), marks_.end(), Marks{0});
}

void CudaStreams::block_goes(BlockId block) noexcept {
  if (!has_marks_.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(mutex_);
  if (block.index() < marks_.size()) await_marked(std::exchange(marks_[block.index()], 0));
}

void CudaStreams::await_marked(Marks marks) noexcept {
  for (std::size_t i = 0; i < others_.size() && marks >> i != 0; ++i) {
    if ((marks >> i & 1U) != 0) wait(home_, others_[i].stream);
  }
}

// An event may be recorded anew as soon as somebody has been told to wait for it. The default stream is the current
// device's, whose that may be.
void CudaStreams::wait(cudaStream_t waiting, cudaStream_t awaited) noexcept {
  const bool may_be_captured = private_pools.load(std::memory_order_relaxed) > 0;
  if (may_be_captured && (is_captured(waiting) || is_captured(awaited))) return;
  int before = device_;
  static_cast<void>(cudaGetDevice(&before));
  if (before != device_) static_cast<void>(cudaSetDevice(device_));
  static_cast<void>(cudaEventRecord(event_, awaited));
  static_cast<void>(cudaStreamWaitEvent(waiting, event_, 0));
  if (before != device_) static_cast<void>(cudaSetDevice(before));
}

}  // namespace coop::plugin
