// Contents that somebody has written without a word stay: to make them again would lose what was written.
#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "support/written_program.hpp"

namespace coop {
namespace {

using testing::Content;
using testing::Program;

constexpr Content kWritten = 77;

Bytes offset_of(Program& program, const Program::Tensor& tensor) {
  return program.pool().info(*program.world().block_of(tensor.token)).offset;
}

TEST(EngineUnseen, WhatWasWrittenIsNotEvictedWithTheRest) {
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  const auto y = program.make(3, {source});
  program.world().write_unseen(x.token, kWritten);
  program.engine().evict_all();
  EXPECT_TRUE(program.engine().is_resident(x.storage));
  EXPECT_FALSE(program.engine().is_resident(y.storage));
  EXPECT_EQ(program.read(x), kWritten);
  EXPECT_EQ(program.engine().stats().unseen_writes, 1U);
  program.engine().evict_all();
  EXPECT_EQ(program.read(x), kWritten);
  EXPECT_EQ(program.engine().stats().unseen_writes, 1U) << "found out once";
  program.engine().validate();
}

TEST(EngineUnseen, ASearchTakesOthersInstead) {
  Program program(4);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  const auto y = program.make(3, {source});
  program.world().write_unseen(x.token, kWritten);
  const Bytes place = offset_of(program, x);
  const auto z = program.make(4, {source}, to_bytes(2));
  EXPECT_FALSE(program.engine().is_resident(y.storage));
  EXPECT_EQ(program.read(z), Program::result(4, {1}));
  EXPECT_EQ(program.read(x), kWritten);
  EXPECT_EQ(offset_of(program, x), place) << "somebody has its address";
  program.engine().validate();
}

TEST(EngineUnseen, WhatOnlyItsLineageNeededGoesWithTheLineage) {
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  program.change(3, x);  // whose past version is of no more use once x stays
  program.world().write_unseen(x.token, kWritten);
  program.release(source);
  program.engine().evict_all();
  EXPECT_EQ(program.read(x), kWritten);
  EXPECT_EQ(program.engine().graph().calls().size(), 0U);
  EXPECT_EQ(program.pool().held_bytes(), kGrainBytes);
  program.engine().validate();
}

// A plan keeps what the program lets go of, for what is made from it: but not where somebody has written there since.
TEST(EngineUnseen, WhatWasWrittenIsNotKept) {
  Program program(9);
  const auto source = program.source(1);
  const Content expected = Program::result(3, {Program::result(2, {1})});
  const auto run_step = [&](bool is_written) {
    const auto narrow = program.make(2, {source});
    const auto wide = program.make(3, {narrow}, to_bytes(4));
    if (is_written) program.world().write_unseen(narrow.token, kWritten);
    program.release(narrow);
    program.release(program.make(4, {source}, to_bytes(6)));
    for (int i = 0; i < 20; ++i) program.release(program.make(5, {source}));
    const auto result = program.make(6, {wide});
    EXPECT_EQ(program.read(result), Program::result(6, {expected}));
    program.release(result);
    program.release(wide);
  };
  for (int step = 0; step < 8; ++step) run_step(false);
  const std::uint64_t kept = program.engine().stats().kept;
  EXPECT_GT(kept, 0U);
  run_step(true);
  EXPECT_EQ(program.engine().stats().kept, kept);
  program.engine().validate();
}

TEST(EngineUnseen, NoRoomWithoutItIsOutOfMemory) {
  Program program(3);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  program.world().write_unseen(x.token, kWritten);
  EXPECT_THROW(program.make(4, {source}, to_bytes(2)), OutOfMemory);
  EXPECT_EQ(program.read(x), kWritten);
}

}  // namespace
}  // namespace coop
