#pragma once

// Our allocator in front of PyTorch's for the CPU. Threads inside a scope get memory of the pool, all
// others what they always got.
//
// Installed once, and for ever: oneDNN frees with the allocator of the moment what it got from the one
// of then, so taking it away again would end the process.

#include <c10/core/Allocator.h>

namespace coop::plugin {

void install_cpu_allocator();
// PyTorch's own.
c10::Allocator& plain_allocator();
// The deleter of memory that is still raw: whoever asked the allocator for it holds it.
void free_raw_memory(void* data) noexcept;

}  // namespace coop::plugin
