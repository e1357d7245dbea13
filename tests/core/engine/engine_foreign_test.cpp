// Contents that lie outside the pool, and contents that must stay in their place.
#include <memory>

#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "support/hash_world.hpp"

namespace coop {
namespace {

using testing::HashWorld;

class EngineForeign : public ::testing::Test {
 protected:
  static constexpr Grains kPool = 10;

  EngineForeign()
      : policy_(make_policy("coop")),
        pool_({.bytes = to_bytes(kPool), .small_limit = 0}, backing_),
        world_(to_bytes(4096)),
        engine_(pool_, *policy_, world_) {
    world_.set_engine(engine_, pool_);
  }

  StorageId foreign(Grains grains) {
    const Token token = world_.new_storage();
    const StorageId id = engine_.add_foreign_source(token, to_bytes(grains), to_bytes(grains));
    world_.write(engine_.graph().values()[engine_.graph().storages()[id].current].block, 1);
    return id;
  }
  StorageId source(Grains grains) {
    const BlockId block = engine_.allocate(to_bytes(grains));
    world_.write(block, 1);
    return engine_.add_source(world_.new_storage(), to_bytes(grains), block);
  }
  StorageId make(Grains grains, StorageId from) {
    RunningCall call = engine_.begin_call({&from, 1}, {});
    const NewOutput output{.block = engine_.allocate(to_bytes(grains), 10),
                           .storage = world_.new_storage(),
                           .bytes = to_bytes(grains)};
    world_.write(output.block, 2);
    const Token token = world_.remember({.salt = 1, .makes = {to_bytes(grains)}, .cost = 10});
    const CallResult result{
        .token = token, .cost = 10, .is_replayable = true, .outputs = {&output, 1}};
    return engine_.end_call(call, result).front();
  }
  Bytes offset_of(StorageId id) {
    const Value& value = engine_.graph().values()[engine_.graph().storages()[id].current];
    return pool_.info(value.block).offset;
  }

  FakeBacking backing_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  HashWorld world_;
  Engine engine_;
};

TEST_F(EngineForeign, TakesItsRoomUntilItIsReleased) {
  const StorageId outside = foreign(4);
  EXPECT_EQ(engine_.held_bytes(), to_bytes(4));
  EXPECT_TRUE(engine_.is_resident(outside));
  EXPECT_THROW(engine_.allocate(to_bytes(7)), OutOfMemory);
  engine_.validate();
  engine_.release(outside);
  EXPECT_EQ(engine_.held_bytes(), 0U);
  engine_.free(engine_.allocate(to_bytes(10)));
}

TEST_F(EngineForeign, EvictsForItsRoom) {
  const StorageId base = source(2);
  const StorageId made = make(4, base);
  const StorageId outside = foreign(6);
  EXPECT_FALSE(engine_.is_resident(made));
  EXPECT_TRUE(engine_.is_resident(outside));
  EXPECT_TRUE(engine_.is_resident(base));
  engine_.validate();
  // There is no way to have all three.
  EXPECT_THROW(engine_.make_resident(made), OutOfMemory);
  engine_.release(outside);
  engine_.make_resident(made);
  engine_.validate();
}

TEST_F(EngineForeign, IsOutOfMemoryWhereItDoesNotFitAndChangesNothing) {
  const StorageId base = source(5);
  try {
    foreign(6);
    FAIL() << "it fits";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().requested, to_bytes(6));
  }
  EXPECT_EQ(engine_.held_bytes(), to_bytes(5));
  EXPECT_TRUE(engine_.is_resident(base));
  engine_.validate();
}

TEST_F(EngineForeign, IsNamedAmongWhatHoldsMemory) {
  foreign(4);
  try {
    engine_.allocate(to_bytes(8));
    FAIL() << "it fits";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().held_as(Holder::kElsewhere).bytes, to_bytes(4));
    EXPECT_EQ(error.report().held_as(Holder::kElsewhere).blocks, 1U);
  }
}

TEST_F(EngineForeign, MovesAsideSinceItHasNoContents) {
  const StorageId first = source(3);
  const StorageId outside = foreign(2);
  engine_.release(first);
  // Eight grains are free, in two pieces.
  const BlockId block = engine_.allocate(to_bytes(8));
  EXPECT_EQ(offset_of(outside), 0U);
  engine_.validate();
  engine_.free(block);
}

TEST_F(EngineForeign, WhatIsKeptInPlaceDoesNotMove) {
  const StorageId first = source(3);
  const StorageId kept = make(2, first);
  engine_.keep_in_place(kept);
  const Bytes before = offset_of(kept);
  engine_.release(first);
  engine_.compact();
  EXPECT_EQ(offset_of(kept), before);
  engine_.evict_all();
  EXPECT_TRUE(engine_.is_resident(kept));
  engine_.validate();
}

TEST_F(EngineForeign, WhatIsHandedBackIsTheWorldsMemory) {
  const StorageId first = source(3);
  const StorageId made = make(2, first);
  EXPECT_EQ(engine_.hand_back(first), std::nullopt);  // `made` is made from it
  EXPECT_EQ(engine_.hand_back(made), std::nullopt);   // which can be made again, and may go
  EXPECT_EQ(engine_.hand_back(foreign(1)), std::nullopt);
  engine_.evict_all();
  EXPECT_EQ(engine_.hand_back(made), std::nullopt);
  engine_.end_lineage(made);
  EXPECT_EQ(engine_.recorded_calls(), 0U);

  const Bytes offset = offset_of(made);
  const auto block = engine_.hand_back(made);
  ASSERT_TRUE(block.has_value());
  ASSERT_TRUE(engine_.hand_back(first).has_value());
  engine_.validate();
  engine_.compact();
  EXPECT_EQ(pool_.info(*block).offset, offset);  // whoever has it may be using it
  const StorageId again = engine_.add_source(world_.new_storage(), to_bytes(2), *block);
  EXPECT_EQ(offset_of(again), offset);
  engine_.validate();
  engine_.release(again);
  EXPECT_FALSE(engine_.has_block(*block));
}

TEST_F(EngineForeign, CompactingLeavesOneHole) {
  const StorageId first = source(3);
  const StorageId second = source(2);
  engine_.release(first);
  engine_.compact();
  EXPECT_EQ(offset_of(second), 0U);
  EXPECT_EQ(pool_.largest_hole_bytes(), to_bytes(8));
  engine_.validate();
}

}  // namespace
}  // namespace coop
