// Cases that look harmless, written out; the random programs of engine_property_test.cpp find the rest.
#include "core/engine/engine.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "support/written_program.hpp"

namespace coop {
namespace {

using testing::Content;
using testing::Program;

TEST(Engine, ReadersOfAVersionComeBeforeWhoeverChangedIt) {
  // y = f(x); x.relu_(): both evicted, both wanted.
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  const auto y = program.make(3, {x});
  program.change(4, x);
  const Content old_x = Program::result(2, {1});
  program.engine().evict_all();
  EXPECT_EQ(program.read(y), Program::result(3, {old_x}));
  EXPECT_EQ(program.read(x), Program::result(4, {old_x}));
  program.engine().evict_all();
  EXPECT_EQ(program.read(x), Program::result(4, {old_x}));
  EXPECT_EQ(program.read(y), Program::result(3, {old_x}));
  program.engine().validate();
}

TEST(Engine, AnAllocationTellsWhereItIsAndWhetherTheBudgetBinds) {
  Program program(4);
  Engine& engine = program.engine();
  const auto source = program.source(1);
  const Allocation made = engine.allocate_memory(kGrainBytes);
  EXPECT_EQ(made.address, program.pool().address(made.block));
  EXPECT_EQ(made.held, to_bytes(2));
  EXPECT_FALSE(made.has_searched);
  EXPECT_EQ(made.making_room_ns, 0U);
  engine.free(made.block);

  const auto x = program.make(2, {source});
  const Allocation large = engine.allocate_memory(to_bytes(3));
  EXPECT_TRUE(large.has_searched);
  EXPECT_FALSE(engine.is_resident(x.storage));
  EXPECT_EQ(large.held, to_bytes(4));
  engine.free(large.block);
  EXPECT_TRUE(engine.allocate_memory(kGrainBytes).has_searched) << "from then on";
}

TEST(Engine, WhatLivesLongLiesAtTheLeft) {
  Program program(64);
  Engine& engine = program.engine();
  const BlockId output = engine.allocate(kGrainBytes, 1000);
  const BlockId workspace = engine.allocate_memory(kGrainBytes, 1000, /*lives_long=*/true).block;
  EXPECT_EQ(program.pool().info(workspace).offset, 0U);
  EXPECT_GT(program.pool().info(output).offset, 0U);
  engine.free(workspace);
  engine.free(output);
}

// The forecast tells operators apart by when their inputs were made. A small block lies among large ones where there is no
// room for a slab, and can be made again then: in the next step, which is the same, there may be room. Plans were left
// for that, and made anew in every step.
TEST(Engine, WhenASmallBlockWasWrittenDoesNotDependOnWhereItLies) {
  constexpr Grains kPool = 16384;
  Program program(kPool, {}, kGrainBytes);
  const auto source = program.source(1, to_bytes(kPool - 1));
  const auto written_at = [&](const Program::Tensor& tensor) {
    return program.engine().graph().storages()[tensor.storage].written_at;
  };
  const auto is_small = [&](const Program::Tensor& tensor) {
    const Graph& graph = program.engine().graph();
    const Value& value = graph.values()[graph.storages()[tensor.storage].current];
    return program.pool().info(value.block).is_small;
  };
  const auto among_large_ones = program.make(2, {source});
  EXPECT_FALSE(is_small(among_large_ones));
  EXPECT_EQ(written_at(among_large_ones), 0U);
  program.release(source);
  const auto in_slab = program.make(2, {program.source(1, to_bytes(2))});
  EXPECT_TRUE(is_small(in_slab));
  EXPECT_EQ(written_at(in_slab), 0U);
  EXPECT_GT(written_at(program.make(3, {in_slab}, to_bytes(2))), 0U);
}

// A lineage ends where memory is short, in one step and not in the next. BERT-Large's plan was left once in every step for
// that, where autograd adds up in place, and blocks did not get the places that were planned for them.
TEST(Engine, WhenAStorageWasWrittenDoesNotDependOnWhetherItsLineageHasEnded) {
  Program program(16);
  const auto source = program.source(1);
  const auto written_at = [&](const Program::Tensor& tensor) {
    return program.engine().graph().storages()[tensor.storage].written_at;
  };
  const auto remembered = program.make(2, {source});
  const auto forgotten = program.make(2, {source});
  program.engine().end_lineage(forgotten.storage);
  for (const auto& sum : {remembered, forgotten}) program.change(3, sum, {source});
  EXPECT_EQ(written_at(remembered), 3U);
  EXPECT_EQ(written_at(forgotten), 4U);
  program.change(3, source);
  EXPECT_EQ(written_at(source), 0U) << "which is there from step to step";
}

TEST(Engine, AThousandChangesInALoop) {
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  Content expected = Program::result(2, {1});
  for (int i = 0; i < 1000; ++i) {
    program.change(3, x);
    expected = Program::result(3, {expected});
  }
  program.engine().evict_all();
  EXPECT_EQ(program.read(x), expected);
}

TEST(Engine, ABufferThatIsOverwrittenEachStepHasNoHistory) {
  Program program(16);
  const auto buffer = program.source(1);
  for (Content step = 0; step < 1000; ++step) {
    const auto batch = program.source(step);
    const auto x = program.make(2, {batch});
    program.overwrite(3, buffer, {x});
    program.release(x);
    program.release(batch);
    program.engine().evict_all();
  }
  EXPECT_EQ(program.read(buffer), Program::result(3, {Program::result(2, {999})}));
  EXPECT_LE(program.engine().graph().calls().size(), 4U);
  EXPECT_LE(program.engine().graph().values().size(), 6U);
}

TEST(Engine, AnOperatorThatReadsWhatItChanges) {
  // x.add_(x)
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  program.run(3, {x}, {{x.storage, true}}, 0, {x});
  program.engine().evict_all();
  const Content old = Program::result(2, {1});
  EXPECT_EQ(program.read(x), Program::result(3, {old, old}));
}

TEST(Engine, OneOfTwoOutputsIsDead) {
  Program program(16);
  const auto source = program.source(1);
  const auto both = program.run(2, {source}, {}, 2);
  program.release(both[0]);
  program.engine().evict_all();
  EXPECT_EQ(program.read(both[1]), Program::result(2, {1}, 1));
}

TEST(Engine, AParameterIsUsedUpdatedAndUsedAgainBeforeBackward) {
  Program program(16);
  const auto weight = program.source(1);
  const auto first = program.make(2, {weight});
  program.engine().evict_all();
  program.change(3, weight);
  const auto second = program.make(2, {weight});
  program.engine().evict_all();
  EXPECT_EQ(program.read(first), Program::result(2, {1}));
  EXPECT_EQ(program.read(second), Program::result(2, {Program::result(3, {1})}));
}

TEST(Engine, AnOperatorThatChangesASourceGivesSources) {
  // A running statistic is updated besides an output being made: that cannot be done twice.
  Program program(16);
  const auto statistic = program.source(1);
  const auto x = program.source(2);
  const auto y = program.run(3, {x}, {{statistic.storage, true}}, 1, {statistic}).at(0);
  program.engine().evict_all();
  EXPECT_TRUE(program.engine().is_resident(y.storage));
  EXPECT_EQ(program.read(statistic), Program::result(3, {2, 1}, 0));
  EXPECT_EQ(program.read(y), Program::result(3, {2, 1}, 1));
}

TEST(Engine, OneKeptOutputDoesNotCostAWholeForwardPass) {
  // The copy of a small source is cheaper than a long recomputation.
  Program program(64);
  const auto weight = program.source(1);
  Content expected = 1;
  Program::Tensor x = program.make(2, {weight});
  expected = Program::result(2, {expected});
  for (int i = 0; i < 50; ++i) {
    const auto next = program.make(3, {x});
    program.release(x);
    x = next;
    expected = Program::result(3, {expected});
  }
  program.engine().evict_all();
  program.change(4, weight);
  EXPECT_EQ(program.engine().stats().copies_aside, 1U);
  EXPECT_EQ(program.engine().stats().replays, 0U);
  EXPECT_GT(program.engine().stats().held_by_lineage, 0U);
  EXPECT_EQ(program.read(x), expected);
  program.release(x);
  EXPECT_EQ(program.engine().stats().held_by_lineage, 0U);
}

TEST(Engine, AMillionEvictedValuesComeBackWithoutRecursionAndWithFewPins) {
  EngineOptions options;
  options.most_depth = 2'000'000;
  options.most_hidden_calls = 2'000'000;
  Program program(12, options);
  const auto source = program.source(1);
  Content expected = 1;
  Program::Tensor x = source;
  // Full checks look at the whole pool after every change, which makes a million of them long.
  constexpr int kLength = kFullChecks ? 20'000 : 1'000'000;
  for (int i = 0; i < kLength; ++i) {
    const auto next = program.make(2, {x});
    expected = Program::result(2, {expected});
    if (i > 0) program.release(x);
    x = next;
  }
  program.engine().evict_all();
  EXPECT_EQ(program.read(x), expected);
  EXPECT_EQ(program.engine().stats().deepest_replay, static_cast<std::uint32_t>(kLength));
  program.release(x);  // and goes without recursion
  EXPECT_EQ(program.engine().graph().calls().size(), 0U);
}

TEST(Engine, TenThousandStepsWithACarriedStateLeaveMemoryFlat) {
  EngineOptions options;
  options.most_depth = 100;
  Program program(32, options);
  auto hidden = program.source(0);
  Content expected = 0;
  std::size_t calls = 0;
  std::size_t values = 0;
  for (Content step = 0; step < 10'000; ++step) {
    const auto batch = program.source(step);
    const auto next = program.make(2, {hidden, batch});
    expected = Program::result(2, {expected, step});
    program.release(hidden);
    program.release(batch);
    hidden = next;
    calls = std::max(calls, program.engine().graph().calls().size());
    values = std::max(values, program.engine().graph().values().size());
  }
  EXPECT_LE(calls, 100U);
  EXPECT_LE(values, 210U);
  EXPECT_EQ(program.read(hidden), expected);
}

TEST(Engine, ALossSummedOverAThousandBatchesKeepsNoThousandGraphs) {
  EngineOptions options;
  options.most_hidden_calls = 64;
  Program program(64, options);
  const auto weight = program.source(7);
  const auto batch = program.source(8);
  auto total = program.source(0);
  Content expected = 0;
  for (int step = 0; step < 1000; ++step) {
    Program::Tensor x = batch;
    Content content = 8;
    for (int layer = 0; layer < 10; ++layer) {
      const auto next = program.make(2, {x, weight});
      content = Program::result(2, {content, 7});
      if (layer > 0) program.release(x);
      x = next;
    }
    const auto sum = program.make(3, {total, x});
    expected = Program::result(3, {expected, content});
    program.release(total);
    program.release(x);
    total = sum;
    ASSERT_LE(program.engine().graph().calls().size(), 100U);
  }
  EXPECT_EQ(program.read(total), expected);
}

TEST(Engine, WhatIsExportedStays) {
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  program.engine().evict_all();
  program.engine().export_storage(x.storage);
  program.engine().evict_all();
  EXPECT_TRUE(program.engine().is_resident(x.storage));
  program.change(3, x);
  program.engine().evict_all();
  EXPECT_TRUE(program.engine().is_resident(x.storage)) << "whatever is written to it later";
  EXPECT_EQ(program.read(x), Program::result(3, {Program::result(2, {1})}));
  program.overwrite(4, x, {source});
  program.engine().evict_all();
  EXPECT_TRUE(program.engine().is_resident(x.storage)) << "even if that could be made again";
  EXPECT_EQ(program.read(x), Program::result(4, {1}));
}

TEST(Engine, WhatWasMadeFromAnExportedStorageKeepsItsNumber) {
  // Whoever has the address writes there, and no operator says so.
  for (const bool is_source : {true, false}) {
    Program program(16);
    const auto first = program.source(1);
    const auto exported = is_source ? first : program.make(2, {first});
    const Content before = is_source ? 1 : Program::result(2, {1});
    const auto y = program.make(3, {exported});
    const auto z = program.make(4, {y});
    program.release(y);
    const auto resident = program.make(5, {exported});
    program.engine().evict_all();
    program.engine().make_resident(resident.storage);
    program.engine().export_storage(exported.storage);
    program.world().write(*program.world().block_of(exported.token), 77);
    program.engine().evict_all();
    EXPECT_EQ(program.read(z), Program::result(4, {Program::result(3, {before})}));
    EXPECT_EQ(program.read(resident), Program::result(5, {before}));
    EXPECT_EQ(program.read(exported), 77U);
    program.engine().validate();
  }
}

TEST(Engine, WhatIsExportedStaysWhereItIsWhenAReplayReadsIt) {
  Program program(8);
  const auto first = program.source(1);
  const auto exported = program.make(2, {first});
  program.engine().export_storage(exported.storage);
  const auto y = program.make(3, {exported});
  program.engine().evict_all();
  EXPECT_EQ(program.read(y), Program::result(3, {Program::result(2, {1})}));
  const BlockId block = *program.world().block_of(exported.token);
  EXPECT_EQ(program.pool().info(block).tenure, Tenure::kStays);
}

TEST(Engine, AHookReadsWhatTheRunningOperatorHasWritten) {
  // The hook's Call is recorded first, so it cannot be made from what is recorded after it.
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  const std::vector<Write> writes{{x.storage, false}};
  RunningCall outer = program.engine().begin_call({}, writes);
  program.world().write(*program.world().block_of(x.token), Program::result(3, {}));
  const auto y = program.make(4, {x});
  program.end(outer, {.salt = 3, .overwrites = {kGrainBytes}, .cost = 1});
  program.engine().validate();
  program.engine().evict_all();
  EXPECT_EQ(program.read(y), Program::result(4, {Program::result(3, {})}));
  EXPECT_EQ(program.read(x), Program::result(3, {}));
}

TEST(Engine, AHookOverwritesWhatTheRunningOperatorHasWritten) {
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  const std::vector<Write> writes{{x.storage, false}};
  RunningCall outer = program.engine().begin_call({}, writes);
  program.world().write(*program.world().block_of(x.token), Program::result(3, {}));
  program.overwrite(4, x, {source});
  program.end(outer, {.salt = 3, .overwrites = {kGrainBytes}, .cost = 1});
  program.engine().validate();
  program.engine().evict_all();
  EXPECT_EQ(program.read(x), Program::result(4, {1}));
}

TEST(Engine, ASourceIsWrittenWhileAnOperatorChangesWhatWasMadeFromIt) {
  // The version that is changed is past, but how to make it must not be lost.
  Program program(16);
  const auto weight = program.source(1);
  const auto x = program.make(2, {weight});
  const std::vector<Write> writes{{x.storage, true}};
  RunningCall outer = program.engine().begin_call({}, writes);
  const Content old_x = Program::result(2, {1});
  program.world().write(*program.world().block_of(x.token), Program::result(3, {old_x}));
  program.change(4, weight);
  program.end(outer, {.salt = 3, .overwrites = {0}, .cost = 1});
  program.engine().validate();
  program.engine().evict_all();
  EXPECT_EQ(program.read(x), Program::result(3, {old_x}));
}

TEST(Engine, ASourceIsWrittenWhileAnOperatorThatFailsOverwritesWhatWasMadeFromIt) {
  Program program(16);
  const auto weight = program.source(1);
  const auto x = program.make(2, {weight});
  program.engine().evict_all();
  const std::vector<Write> writes{{x.storage, false}};
  RunningCall outer = program.engine().begin_call({}, writes);
  program.change(4, weight);
  program.engine().abort_call(outer);
  program.engine().validate();
  EXPECT_EQ(program.read(x), Program::result(2, {1}));
}

TEST(Engine, WhereLineageEndedNothingIsMadeAgain) {
  Program program(16);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  const auto y = program.make(3, {x});
  program.engine().evict_all();
  program.engine().end_lineage(y.storage);
  program.engine().evict_all();
  EXPECT_TRUE(program.engine().is_resident(y.storage));
  EXPECT_FALSE(program.engine().is_resident(x.storage));
  program.overwrite(4, source, {});  // x depends on what it was, y no longer
  EXPECT_EQ(program.read(y), Program::result(3, {Program::result(2, {1})}));
  program.overwrite(5, y, {source});
  program.engine().evict_all();
  EXPECT_FALSE(program.engine().is_resident(y.storage))
      << "what is written there later is like any";
  program.engine().validate();
}

TEST(Engine, BadResultsAreAnErrorAndChangeNothing) {
  Program program(16);
  const auto x = program.source(1);
  const std::vector<StorageId> reads{x.storage};
  RunningCall call = program.engine().begin_call(reads, {});
  EXPECT_THROW(program.engine().end_call(call, {.cost = std::nan("")}), InvalidArgument);
  const std::vector<NewOutput> outputs{{.block = {}, .storage = 1, .bytes = 512}};
  EXPECT_THROW(program.engine().end_call(call, {.cost = 1, .outputs = outputs}), InvalidArgument);
  program.engine().abort_call(call);
  program.engine().validate();
  EXPECT_EQ(program.read(x), 1U);
}

TEST(Engine, UnknownStoragesAreAnErrorAndChangeNothing) {
  Program program(16);
  const auto x = program.source(1);
  program.release(x);
  const std::vector<StorageId> reads{x.storage};
  EXPECT_THROW(program.engine().begin_call(reads, {}), InvalidArgument);
  const auto y = program.source(2);
  const std::vector<Write> twice{{y.storage, true}, {y.storage, false}};
  EXPECT_THROW(program.engine().begin_call({}, twice), InvalidArgument);
  EXPECT_EQ(program.read(y), 2U);
  EXPECT_THROW(program.engine().make_resident(x.storage), InvalidArgument);
  EXPECT_THROW(program.engine().export_storage({}), InvalidArgument);
  program.engine().validate();
}

}  // namespace
}  // namespace coop
