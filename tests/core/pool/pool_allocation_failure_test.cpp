// What if the bookkeeping itself runs out of memory? Every allocation of ours is made to fail once,
// in turn: the pool's call must throw, change nothing, and work when it is tried again.
#include <new>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/pool/pool.hpp"
#include "support/failing_new.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::FailsAt;

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
    pool.trim();
    const Bytes largest_hole = pool.largest_hole_bytes();
    std::optional<BlockId> block;
    for (int failing = 0; !block; ++failing) {
      try {
        const FailsAt fails(failing);
        block = pool.allocate(size, placement);
        ASSERT_TRUE(block);
      } catch (const std::bad_alloc&) {
        ++failures;
        ASSERT_EQ(pool.held_bytes(), held);
        pool.trim();
        ASSERT_EQ(pool.largest_hole_bytes(), largest_hole);
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

TEST_P(PoolAllocationFailure, OfTheConstructorGivesTheMemoryBack) {
  class Counting final : public Backing {
   public:
    std::byte* acquire(Bytes bytes) override {
      ++acquired;
      return FakeBacking().acquire(bytes);
    }
    void give_back(std::byte* /*memory*/, Bytes /*bytes*/) noexcept override { --acquired; }
    int acquired = 0;
  } backing;
  bool is_made = false;
  int failures = 0;
  for (; !is_made; ++failures) {
    try {
      const FailsAt fails(failures);
      const Pool pool({.bytes = 1_MiB, .fit = GetParam()}, backing);
      is_made = true;
    } catch (const std::bad_alloc&) {
      ASSERT_EQ(backing.acquired, 0);
    }
  }
  EXPECT_GT(failures, 3);
  EXPECT_EQ(backing.acquired, 0);
}

INSTANTIATE_TEST_SUITE_P(BothFits, PoolAllocationFailure,
                         ::testing::Values(Fit::kFromEnds, Fit::kBest), [](const auto& test) {
                           return test.param == Fit::kBest ? "BestFit" : "FromEnds";
                         });

}  // namespace
}  // namespace coop
