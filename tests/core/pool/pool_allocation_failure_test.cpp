// What if the bookkeeping itself runs out of memory? Every allocation of ours is made to fail once,
// in turn: the pool's call must throw, change nothing, and work when it is tried again.
#include <cstdlib>
#include <new>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/pool/pool.hpp"
#include "support/random_cases.hpp"

namespace {

// Counts down to the allocation that fails; negative: none does.
int g_allocations_until_failure = -1;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (g_allocations_until_failure >= 0 && g_allocations_until_failure-- == 0)
    throw std::bad_alloc();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace coop {
namespace {

class FailsAt {
 public:
  explicit FailsAt(int allocation) { g_allocations_until_failure = allocation; }
  FailsAt(const FailsAt&) = delete;
  FailsAt& operator=(const FailsAt&) = delete;
  ~FailsAt() { g_allocations_until_failure = -1; }
};

class PoolAllocationFailure : public ::testing::TestWithParam<Fit> {};

TEST_P(PoolAllocationFailure, ChangesNothing) {
  FakeBacking backing;
  Pool pool({.bytes = 64_MiB, .fit = GetParam(), .small_limit = 8_KiB}, backing);
  std::vector<BlockId> blocks;
  testing::Random random(3);
  int failures = 0;
  for (int i = 0; i < 3000; ++i) {
    const Bytes size = 1 + random.below(random.chance(0.5) ? 8_KiB : 24_KiB);
    const auto placement = static_cast<Placement>(random.below(3));
    const Bytes held = pool.held_bytes();
    std::optional<BlockId> block;
    for (int failing = 0; !block; ++failing) {
      try {
        const FailsAt fails(failing);
        block = pool.allocate(size, placement);
        ASSERT_TRUE(block);
      } catch (const std::bad_alloc&) {
        ++failures;
        ASSERT_EQ(pool.held_bytes(), held);
        pool.validate();
      }
    }
    blocks.push_back(*block);
    if (random.chance(0.3)) {
      const std::size_t victim = random.below(blocks.size());
      const FailsAt fails(0);  // freeing allocates nothing
      ASSERT_TRUE(pool.free(blocks[victim]));
      blocks[victim] = blocks.back();
      blocks.pop_back();
    }
  }
  EXPECT_GT(failures, 100);
  const FailsAt fails(0);
  for (const BlockId block : blocks) ASSERT_TRUE(pool.free(block));
  EXPECT_EQ(pool.held_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(BothFits, PoolAllocationFailure,
                         ::testing::Values(Fit::kFromEnds, Fit::kBest), [](const auto& test) {
                           return test.param == Fit::kBest ? "BestFit" : "FromEnds";
                         });

}  // namespace
}  // namespace coop
