// Small blocks seen through the pool, which is how they are used.
#include "core/pool/small_area.hpp"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "core/pool/pool.hpp"

namespace coop {
namespace {

TEST(SmallArea, ClassesWasteLessThanAQuarter) {
  const SmallArea area(128, 512);
  for (Grains size = 1; size <= 128; ++size) {
    EXPECT_GE(area.slot_size(size), size);
    EXPECT_LT(area.slot_size(size), size + std::max(1.0, size * 0.25)) << size;
    EXPECT_EQ(area.slab_size(size) % area.slot_size(size), 0);
    EXPECT_LE(area.slab_size(size), 512);
  }
  EXPECT_FALSE(area.takes(129));
}

class SmallBlocks : public ::testing::Test {
 protected:
  FakeBacking backing_;
  Pool pool_{{.bytes = 64_MiB}, backing_};
};

TEST_F(SmallBlocks, LieTogetherAtTheLeftEnd) {
  const BlockId product = *pool_.allocate(1_MiB, Placement::kExpensive);
  std::set<Bytes> offsets;
  for (int i = 0; i < 1000; ++i) {
    const BlockId block = *pool_.allocate(4, Placement::kCheap);
    EXPECT_TRUE(pool_.info(block).is_small);
    EXPECT_TRUE(offsets.insert(pool_.info(block).offset).second);
  }
  EXPECT_LT(*offsets.rbegin(), 2_MiB);
  EXPECT_EQ(pool_.held_bytes(), 1_MiB + Bytes{1000} * 512);
  EXPECT_TRUE(pool_.contains(product));
  pool_.validate();
}

TEST_F(SmallBlocks, DoNotCutThePool) {
  // One large, one small, fifty times; then the large ones go.
  std::vector<BlockId> large;
  for (int i = 0; i < 50; ++i) {
    large.push_back(*pool_.allocate(1_MiB, Placement::kExpensive));
    ASSERT_TRUE(pool_.allocate(64_KiB, Placement::kExpensive));
  }
  for (const BlockId block : large) ASSERT_TRUE(pool_.free(block));
  EXPECT_GE(pool_.largest_hole_bytes(), 59_MiB);
}

TEST_F(SmallBlocks, AreNeverEvictable) {
  const BlockId block = *pool_.allocate(100, Placement::kCheap);
  pool_.set_evictable(block, 10, 10);
  EXPECT_NE(pool_.info(block).tenure, Tenure::kEvictable);
}

TEST_F(SmallBlocks, GiveTheirSlabsBack) {
  std::vector<BlockId> blocks;
  for (int i = 0; i < 1500; ++i) {
    blocks.push_back(*pool_.allocate(static_cast<Bytes>(1 + i * 43 % 65536), Placement::kCheap));
  }
  for (const BlockId block : blocks) ASSERT_TRUE(pool_.free(block));
  EXPECT_EQ(pool_.held_bytes(), 0U);
  // Empty slabs that were kept for speed do not stand in the way of one that needs everything.
  EXPECT_TRUE(pool_.allocate(64_MiB, Placement::kExpensive));
}

TEST_F(SmallBlocks, TakeWhatIsFreeWhenNoSlabFits) {
  ASSERT_TRUE(pool_.allocate(64_MiB - 512, Placement::kExpensive));
  const auto block = pool_.allocate(512, Placement::kCheap);
  ASSERT_TRUE(block);
  EXPECT_FALSE(pool_.info(*block).is_small);
  EXPECT_EQ(pool_.free_bytes(), 0U);
}

TEST_F(SmallBlocks, KnowDoubleFrees) {
  const BlockId block = *pool_.allocate(100, Placement::kCheap);
  EXPECT_TRUE(pool_.free(block));
  EXPECT_FALSE(pool_.free(block));
  EXPECT_EQ(pool_.held_bytes(), 0U);
}

}  // namespace
}  // namespace coop
