#pragma once

// What PyTorch records of GPUs' memory, for pools as well (memory_history.hpp).

#include <cstddef>
#include <string>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>

namespace coop::plugin {

// As it was asked of PyTorch's allocator.
void record_cuda_history(bool is_on, c10::cuda::CUDACachingAllocator::CreateContextFn take_stack,
                         std::size_t most, c10::cuda::CUDACachingAllocator::RecordContext when,
                         bool clears, const std::vector<std::string>& skipped);
// Who asked for it while our allocator was not in front of PyTorch's has told that one alone. For pools that begin
// from now on.
void follow_cuda_history(c10::cuda::CUDACachingAllocator::CUDAAllocator& torchs_own);
[[nodiscard]] bool is_cuda_history_on() noexcept;
void add_pools_to(c10::cuda::CUDACachingAllocator::SnapshotInfo& all);

}  // namespace coop::plugin
