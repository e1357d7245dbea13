#include "support/failing_new.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace {

// Counts down to the allocation that fails; negative: none does.
int allocations_until_failure = -1;  // NOLINT(readability-identifier-naming): a test's own global
std::size_t in_use = 0;              // NOLINT(readability-identifier-naming): a test's own global
std::size_t most_in_use = 0;         // NOLINT(readability-identifier-naming): a test's own global

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (!coop::testing::is_spared && allocations_until_failure >= 0 &&
      allocations_until_failure-- == 0) {
    throw std::bad_alloc();
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  in_use += malloc_usable_size(memory);
  most_in_use = std::max(most_in_use, in_use);
  return memory;
}

void release(void* memory) noexcept {
  in_use -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return allocate(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { release(memory); }
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  release(memory);
}

namespace coop::testing {

FailsAt::FailsAt(int allocation) : allocation_(allocation) {
  allocations_until_failure = allocation;
}
FailsAt::~FailsAt() { allocations_until_failure = -1; }

int FailsAt::seen() const { return allocation_ - allocations_until_failure; }

std::size_t bytes_in_use() { return in_use; }

MostBytes::MostBytes() : before_(in_use) { most_in_use = in_use; }

std::size_t MostBytes::so_far() const { return most_in_use - before_; }

}  // namespace coop::testing
