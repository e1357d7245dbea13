// A GPU's memory.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <dlfcn.h>

#include "core/base/errors.hpp"
#include "plugin/cuda/cuda_allocator.hpp"
#include "plugin/cuda/cuda_streams.hpp"
#include "plugin/cuda/cuda_times.hpp"
#include "plugin/device.hpp"
#include "plugin/thread_state.hpp"

namespace coop::plugin {
namespace {

using c10::cuda::CUDAGuard;

// What takes a workspace for a thread and a stream when it is called first: at::cuda::getCurrentCUDABlasHandle() for cuBLAS,
// at::cuda::getCUDABlasLtWorkspace() for cuBLASLt. Looked up: an older PyTorch does not have the second, and a newer one has
// the first with an argument, and keeps no workspaces.
using TakeWorkspace = void* (*)();
std::span<const TakeWorkspace> workspaces() {
  static const auto found = [] {
    std::vector<TakeWorkspace> all;
    void* torch = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    if (torch == nullptr) return all;
    for (const char* name :
         {"_ZN2at4cuda24getCurrentCUDABlasHandleEv", "_ZN2at4cuda22getCUDABlasLtWorkspaceEv"}) {
      void* take = dlsym(torch, name);
      if (take == nullptr) break;
      all.push_back(reinterpret_cast<TakeWorkspace>(take));
    }
    return all;
  }();
  return found;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(c10::Device which) : Device(which) {}

  [[nodiscard]] Bytes whole_bytes() const override { return memory().second; }
  [[nodiscard]] Bytes free_bytes() const override { return memory().first; }
  void install_allocator() override {
    install_cuda_allocator();
    ++budgets_;
  }
  void remove_allocator() noexcept override { remove_cuda_allocator(); }
  [[nodiscard]] c10::Allocator& plain_allocator() const override { return plain_cuda_allocator(); }

  // With what it keeps for later, which is less after this; and with our own.
  [[nodiscard]] Bytes bytes_before() override {
    const CUDAGuard guard(which().index());
    if (staging_ == nullptr) staging_ = acquire(kStaging);
    plain_cuda_allocator().emptyCache();
    return bytes_now();
  }
  [[nodiscard]] Bytes bytes_now() const override {
    const auto stats = plain_cuda_allocator().getDeviceStats(which().index());
    return kStaging + static_cast<Bytes>(stats.reserved_bytes[0].current);
  }
  [[nodiscard]] bool has_stand_ins() const override { return false; }

  std::byte* acquire(Bytes bytes) override {
    const CUDAGuard guard(which().index());
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) == cudaSuccess) return static_cast<std::byte*>(memory);
    static_cast<void>(cudaGetLastError());
    throw std::bad_alloc();
  }
  void give_back(std::byte* memory, Bytes /*bytes*/) noexcept override {
    // It waits for all that is still to be done there.
    const cudaError_t error = cudaFree(memory);
    static_cast<void>(error);
  }
  void discard(std::byte* /*memory*/, Bytes /*bytes*/) noexcept override {}

  void copy(void* to, const void* from, std::size_t bytes) override {
    C10_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()));
  }

  // In pieces that do not overlap with where they go. Where these would be many, by way of another place.
  void move(void* to, const void* from, std::size_t bytes) override {
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
    const auto gap = target < source ? static_cast<std::size_t>(source - target) : bytes;
    constexpr std::size_t kFewPieces = 16;
    if (gap >= bytes / kFewPieces) {
      for (std::size_t done = 0; done < bytes; done += gap) {
        copy(target + done, source + done, std::min(gap, bytes - done));
      }
      return;
    }
    for (std::size_t done = 0; done < bytes; done += kStaging) {
      const std::size_t piece = std::min(kStaging, bytes - done);
      copy(staging_, source + done, piece);
      copy(target + done, staging_, piece);
    }
  }

  void wait() override {
    const CUDAGuard guard(which().index());
    C10_CUDA_CHECK(cudaDeviceSynchronize());
  }

  // Only where every byte is wanted: the host must wait for it.
  std::uint64_t sum(const void* data, std::size_t bytes, Sample sample) noexcept override {
    if (sample != Sample::kAll || bytes == 0) return 0;
    try {
      const CUDAGuard guard(which().index());
      std::vector<std::byte> contents(bytes);
      if (cudaDeviceSynchronize() != cudaSuccess) return 0;
      if (cudaMemcpy(contents.data(), data, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 0;
      return checksum(contents.data(), bytes, sample);
    } catch (const std::exception&) {
      return 0;
    }
  }

  // When a budget begins, all of them are dropped (coop.budget).
  void settle_workspace() override {
    struct Settled {
      const CudaDevice* device = nullptr;
      cudaStream_t stream = nullptr;
      std::uint64_t budget = 0;
      bool operator==(const Settled&) const = default;
    };
    constinit thread_local Settled settled;
    const Settled now{this, stream(), budgets_.load()};
    if (settled == now) return;
    settled = now;
    const CUDAGuard guard(which().index());
    const Settling settling;
    try {
      for (const TakeWorkspace take : workspaces()) static_cast<void>(take());
    } catch (const c10::OutOfMemoryError&) {
      // There is no room for it. The operator will ask once more, and there may be room then.
    }
  }

  [[nodiscard]] std::unique_ptr<OperatorTimes> make_times() override {
    return std::make_unique<CudaTimes>(which().index());
  }
  [[nodiscard]] std::unique_ptr<StreamOrder> make_stream_order() override {
    return std::make_unique<CudaStreams>(which().index());
  }

 private:
  static constexpr std::size_t kStaging = std::size_t{4} << 20U;

  [[nodiscard]] std::pair<Bytes, Bytes> memory() const {
    const CUDAGuard guard(which().index());
    std::size_t free = 0;
    std::size_t total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return {free, total};
  }
  [[nodiscard]] cudaStream_t stream() const {
    return c10::cuda::getCurrentCUDAStream(which().index()).stream();
  }

  // Not a block of the pool's: that is full when things are moved. For ever, like the device.
  std::byte* staging_ = nullptr;
  // That have begun, or gone on, on any GPU: with each the workspaces of all of them are dropped.
  static inline std::atomic<std::uint64_t> budgets_ = 0;
};

const DeviceKind kCuda(c10::kCUDA, [](c10::Device which) -> std::unique_ptr<Device> {
  const int count = c10::cuda::device_count();
  const int index = which.has_index() ? which.index() : c10::cuda::current_device();
  if (index < 0 || index >= count) {
    throw InvalidArgument("there is no 'cuda:" + std::to_string(index) + "': this machine has " +
                          std::to_string(count) + " GPUs that PyTorch can use");
  }
  return std::make_unique<CudaDevice>(
      c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)));
});

}  // namespace
}  // namespace coop::plugin
