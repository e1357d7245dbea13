#pragma once

// Our allocator in front of PyTorch's for GPUs. Threads inside a scope get memory of the pool, all others what
// they always got; and so does whoever has asked for a pool of PyTorch's own (CUDA graphs, MemPool).
//
// It is there while a pool is. What it counts is PyTorch's and ours together.

#include <c10/cuda/CUDACachingAllocator.h>

namespace coop::plugin {

void install_cuda_allocator();
void remove_cuda_allocator() noexcept;
// PyTorch's own.
c10::cuda::CUDACachingAllocator::CUDAAllocator& plain_cuda_allocator();

}  // namespace coop::plugin
