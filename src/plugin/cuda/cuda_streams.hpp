#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <c10/cuda/CUDAStream.h>

#include "plugin/stream_order.hpp"

namespace coop::plugin {

// Note [Streams], on a GPU.
class CudaStreams final : public StreamOrder {
 public:
  explicit CudaStreams(c10::DeviceIndex device);
  ~CudaStreams() override;

  void allocated(BlockId block) override;
  void begin_operator() override;
  [[nodiscard]] bool is_capturing() const override;
  [[nodiscard]] bool is_home() const override;
  void use(BlockId block) override;
  void use_on(BlockId block, c10::Stream stream) override;
  std::unique_ptr<AtHome> at_home() override;
  void await(BlockId block) noexcept override;
  void await_all() noexcept override;
  void block_goes(BlockId block) noexcept override;

 private:
  class Guard;
  // Streams other than home that were ever seen with a block of ours have a number, and a bit in the blocks' marks.
  static constexpr std::size_t kMost = 32;
  using Marks = std::uint32_t;
  struct Other {
    cudaStream_t stream = nullptr;
    std::uint64_t has_seen = 0;  // of the engine's work
  };

  [[nodiscard]] cudaStream_t current() const;
  [[nodiscard]] std::size_t number_of(cudaStream_t stream);
  void mark(BlockId block, std::size_t number);
  void await_marked(Marks marks) noexcept;
  void wait(cudaStream_t waiting, cudaStream_t awaited) noexcept;
  void choose_home();

  c10::DeviceIndex device_;
  std::atomic<cudaStream_t> home_ = nullptr;
  std::atomic<bool> has_home_ = false;
  std::atomic<bool> has_marks_ = false;

  mutable std::mutex mutex_;
  cudaEvent_t event_ = nullptr;
  std::uint64_t work_ = 0;  // that the engine has enqueued on home
  std::vector<Other> others_;
  std::vector<Marks> marks_;  // by BlockId::index(), of the block that is there now
};

}  // namespace coop::plugin
