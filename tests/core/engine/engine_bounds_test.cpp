// Lineage is bounded: however long a program runs, the engine keeps no more than after its first
// steps.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/check.hpp"
#include "core/engine/engine.hpp"
#include "support/failing_new.hpp"
#include "support/written_program.hpp"

namespace coop {
namespace {

using testing::Content;
using testing::Program;
using testing::ReplayObserver;

// Everything that might grow.
struct Footprint {
  std::size_t values = 0;
  std::size_t calls = 0;
  Bytes held = 0;
  Bytes held_by_lineage = 0;
  std::size_t heap = 0;  // of the engine, and of the test

  static Footprint of(Program& program) {
    const Engine& engine = program.engine();
    return {engine.graph().values().size(), engine.graph().calls().size(),
            program.pool().held_bytes(), engine.stats().held_by_lineage, testing::bytes_in_use()};
  }
  void grow_to(const Footprint& other) {
    values = std::max(values, other.values);
    calls = std::max(calls, other.calls);
    held = std::max(held, other.held);
    held_by_lineage = std::max(held_by_lineage, other.held_by_lineage);
    heap = std::max(heap, other.heap);
  }
  friend bool operator<=(const Footprint& a, const Footprint& b) {
    return a.values <= b.values && a.calls <= b.calls && a.held <= b.held &&
           a.held_by_lineage <= b.held_by_lineage && a.heap <= b.heap;
  }
  friend std::ostream& operator<<(std::ostream& out, const Footprint& f) {
    return out << f.values << " values, " << f.calls << " calls, " << f.held << " bytes held, "
               << f.held_by_lineage << " by lineage alone, " << f.heap << " on the heap";
  }
};

// Runs step(0), step(1) ... and demands that the last nine tenths of them need no more than the
// first.
template <typename Step>
void expect_flat(Program& program, Content steps, const Step& step) {
  Footprint most;
  Footprint late;
  for (Content i = 0; i < steps; ++i) {
    step(i);
    (i < steps / 10 ? most : late).grow_to(Footprint::of(program));
  }
  EXPECT_TRUE(late <= most) << "first " << most << "\nlater " << late;
  program.engine().validate();
}

constexpr Content kSteps = kFullChecks ? 1'000 : 10'000;

// A hidden state goes from step to step; a batch comes in each step and goes. It begins as
// something small, so that not even its beginning is worth giving up.
void carry_state(Grains pool, Bytes state_bytes, Bytes batch_bytes, const EngineOptions& options) {
  Program program(pool, options);
  const auto seed = program.source(1);
  auto state = program.make(3, {seed}, state_bytes);
  Content expected = Program::result(3, {1});
  expect_flat(program, kSteps, [&](Content step) {
    const auto batch = program.source(step, batch_bytes);
    const auto next = program.make(2, {state, batch}, state_bytes);
    expected = Program::result(2, {expected, step});
    program.release(state);
    program.release(batch);
    state = next;
  });
  EXPECT_EQ(program.read(state), expected);
}

TEST(EngineBounds, ACarriedStateOfTheSizeOfABatch) {
  carry_state(64, kGrainBytes, kGrainBytes, {});
}

TEST(EngineBounds, ACarriedStateThatIsSmallAgainstABatch) {
  carry_state(64, kGrainBytes, 8 * kGrainBytes, {});
}

TEST(EngineBounds, ACarriedStateThatIsLargeAgainstABatch) {
  carry_state(64, 8 * kGrainBytes, kGrainBytes, {.most_depth = 20});
}

// Each batch alone is smaller than the state that is made from it; all of them together are not.
TEST(EngineBounds, ACarriedStateThatIsLargeAgainstABatchWithNoBoundOnDepth) {
  carry_state(256, 8 * kGrainBytes, kGrainBytes, {});
}

TEST(EngineBounds, ATrainingLoop) {
  // Parameters and an average that are updated in place, activations that are read by a backward, a
  // sum of losses.
  Program program(64);
  const auto weight = program.source(1);
  const auto average = program.source(2);
  auto total = program.source(3);
  Content weight_now = 1;
  Content average_now = 2;
  Content total_now = 3;
  expect_flat(program, kSteps, [&](Content step) {
    const auto batch = program.source(step);
    const auto hidden = program.make(4, {batch, weight});
    const auto loss = program.make(5, {hidden, weight});
    const auto gradient = program.make(6, {loss, hidden, weight});
    const auto sum = program.make(7, {total, loss});
    program.release(total);
    total = sum;
    program.change(8, average, {gradient});
    program.change(9, weight, {gradient});

    const Content hidden_now = Program::result(4, {step, weight_now});
    const Content loss_now = Program::result(5, {hidden_now, weight_now});
    const Content gradient_now = Program::result(6, {loss_now, hidden_now, weight_now});
    total_now = Program::result(7, {total_now, loss_now});
    average_now = Program::result(8, {gradient_now, average_now});
    weight_now = Program::result(9, {gradient_now, weight_now});
    for (const auto& tensor : {batch, hidden, loss, gradient}) program.release(tensor);
    if (step % 100 == 0) program.engine().evict_all();
  });
  EXPECT_EQ(program.read(weight), weight_now);
  EXPECT_EQ(program.read(average), average_now);
  EXPECT_EQ(program.read(total), total_now);
}

// (Losses that are small are Sources from birth, and a sum that begins as a Source ends its past as it
// goes.)
TEST(EngineBounds, ALargeLossSummedOverThousandsOfBatchesKeepsFewOfTheirGraphs) {
  Program program(64);
  const auto weight = program.source(7);
  const auto batch = program.source(8);
  auto total = program.make(1, {batch});
  for (int step = 0; step < 3000; ++step) {
    auto x = program.make(2, {batch, weight});
    for (int layer = 1; layer < 10; ++layer) {
      const auto next = program.make(2, {x, weight});
      program.release(x);
      x = next;
    }
    const auto sum = program.make(3, {total, x});
    program.release(total);
    program.release(x);
    total = sum;
  }
  EXPECT_LE(program.engine().graph().calls().size(), 9000U) << "of 33,000";
}

TEST(EngineBounds, AStateThatIsChangedInPlaceForever) {
  Program program(64, {.most_depth = kSteps / 20});
  const auto source = program.source(1);
  const auto state = program.make(2, {source});
  Content expected = Program::result(2, {1});
  expect_flat(program, kSteps, [&](Content /*step*/) {
    program.change(3, state, {source});
    expected = Program::result(3, {1, expected});
  });
  EXPECT_EQ(program.read(state), expected);
}

TEST(EngineBounds, LineageThatThereIsNoRoomToEndDoesNotKeepOperatorsFromRunning) {
  // y takes two blocks to bring back, of which there is one; what an operator does with x is not
  // its concern.
  Program program(4, {.most_hidden_calls = 0});
  const auto source = program.source(1);
  // Seven hidden Calls are too many for one other, but not for three.
  const auto one = program.make(8, {source});
  const auto two = program.make(9, {source});
  auto between = program.make(2, {source});
  Content expected = Program::result(2, {1});
  for (int i = 0; i < 6; ++i) {
    const auto next = program.make(2, {between});
    program.release(between);
    between = next;
    expected = Program::result(2, {expected});
  }
  const auto y = program.make(3, {between});
  program.release(between);
  ASSERT_EQ(program.engine().graph().hidden_count(), 7U);
  const auto x = program.source(4);
  const auto full = program.source(5);
  const auto fuller = program.source(6);  // y is evicted
  program.release(fuller);
  program.release(one);
  program.release(two);
  ASSERT_FALSE(program.engine().is_resident(y.storage));
  program.change(7, x);
  EXPECT_EQ(program.read(x), Program::result(7, {4}));
  program.release(full);
  EXPECT_EQ(program.read(y), Program::result(3, {expected}));
}

// The most blocks that are pinned when a replay begins to run a Call.
class PinCounter final : public ReplayObserver {
 public:
  explicit PinCounter(const Program& program) : program_(program) {}
  void replay_begins(Token /*call*/, const testing::HashOp& /*op*/) override {
    std::size_t pinned = 0;
    program_.engine().graph().values().for_each([&](ValueId, const Value& value) {
      if (value.is_resident() && program_.pool().info(value.block).pins > 0) ++pinned;
    });
    most = std::max(most, pinned);
  }
  std::size_t most = 0;

 private:
  const Program& program_;
};

TEST(EngineBounds, ALongReplayPinsOnlyWhatTheRunningCallReads) {
  // There is room for everything, so that it is not the budget that keeps the pins few.
  constexpr int kLength = kFullChecks ? 200 : 1000;
  Program program(2 * kLength + 16, {.most_depth = 2 * kLength});
  PinCounter pins(program);
  program.world().set_observer(pins);
  const auto source = program.source(1);
  std::vector<Program::Tensor> chain{program.make(2, {source})};
  Content expected = Program::result(2, {1});
  for (int i = 1; i < kLength; ++i) {
    chain.push_back(program.make(3, {chain.back(), source}));
    expected = Program::result(3, {expected, 1});
  }
  program.engine().evict_all();
  EXPECT_EQ(program.read(chain.back()), expected);
  EXPECT_EQ(program.engine().stats().deepest_replay, static_cast<std::uint32_t>(kLength));
  EXPECT_EQ(pins.most, 2U);
}

TEST(EngineBounds, PredictionsThatAreEvictedDoNotKeepTheirBatches) {
  // An evaluation that collects what the network says: small, and made from batches that are large.
  Program program(64);
  const auto weight = program.source(1);
  std::vector<Program::Tensor> predictions;
  for (Content i = 0; i < 40; ++i) {
    const auto batch = program.source(i, 4 * kGrainBytes);
    const auto hidden = program.make(2, {weight, batch});
    predictions.push_back(program.make(3, {hidden}));
    program.release(hidden);
    program.engine().evict_all();
    program.release(batch);
  }
  for (Content i = 0; i < 40; ++i) {
    EXPECT_EQ(program.read(predictions[i]), Program::result(3, {Program::result(2, {1, i})}));
  }
  program.engine().validate();
}

TEST(EngineBounds, WhoeverOnlyRunsInCirclesIsOutOfMemoryAndCanGoOn) {
  Program program(64, {.most_slowdown = 10});
  std::vector<Program::Tensor> chain{program.source(1)};
  Content expected = 1;
  for (Content i = 2; i < 30; ++i) {
    chain.push_back(program.make(i, {chain.back()}));
    expected = Program::result(i, {expected});
  }
  int reads = 0;
  const auto read_until_it_fails = [&] {
    for (reads = 0; reads < 1000; ++reads) {
      program.engine().evict_all();
      EXPECT_EQ(program.read(chain.back()), expected);
    }
  };
  EXPECT_THROW(read_until_it_fails(), OutOfMemory);
  EXPECT_GE(reads, 10) << "the whole program may be run again ten times";
  EXPECT_LE(reads, 11);
  program.engine().validate();
  EXPECT_EQ(program.read(chain.back()), expected);
  // Whoever gets on in between has as much time again.
  for (int i = 0; i < 100; ++i) {
    program.engine().evict_all();
    EXPECT_EQ(program.read(chain[2]), Program::result(3, {Program::result(2, {1})}));
    program.release(program.make(100, {chain.front()}));
  }
}

TEST(EngineBounds, OperatorsThatCannotBeRunAgainAreProgressToo) {
  // An optimizer's: it writes what is there to stay.
  Program program(64, {.most_slowdown = 10});
  const auto weight = program.source(1);
  const auto x = program.make(2, {program.source(3)});
  for (int step = 0; step < 1000; ++step) {
    program.engine().evict_all();
    EXPECT_EQ(program.read(x), Program::result(2, {3}));
    program.change(4, weight);
  }
}

// Parameters and momentum became Sources one after the other, each in another step: no step was as the one before, and
// plans were left and made anew. An activation is changed soon after it was made.
TEST(EngineBounds, WhatIsChangedLongAfterItWasWrittenIsASource) {
  Program program(64);
  const auto input = program.source(1);
  const auto state = program.make(2, {input});
  program.change(3, state);
  program.engine().evict_all();
  EXPECT_FALSE(program.engine().is_resident(state.storage));
  for (Content i = 0; i < 300; ++i) program.release(program.make(100 + i, {input}));
  program.change(4, state);
  program.engine().evict_all();
  EXPECT_TRUE(program.engine().is_resident(state.storage));
  EXPECT_EQ(program.read(state),
            Program::result(4, {Program::result(3, {Program::result(2, {1})})}));
  program.engine().validate();
}

TEST(EngineBounds, WhatWasToComeAlongStaysAwayWhereThereIsNoRoom) {
  Program program(10);
  const auto x = program.make(2, {program.source(1)});
  const auto small = program.make(3, {x});
  const auto large = program.make(4, {x}, 5 * kGrainBytes);
  program.change(5, x);  // what both are made from is past
  program.engine().evict_all();
  const auto other = program.source(6, 4 * kGrainBytes);
  RunningCall reads_other = program.engine().begin_call({&other.storage, 1}, {});
  EXPECT_EQ(program.read(small), Program::result(3, {Program::result(2, {1})}));
  EXPECT_FALSE(program.engine().is_resident(large.storage));
  program.engine().abort_call(reads_other);
  program.engine().validate();
}

TEST(EngineBounds, AReplayThatFindsNoRoomBesideWhatItReadsMovesThatAside) {
  Program program(10);
  const auto left = program.source(5, 3 * kGrainBytes);
  const auto x = program.source(1);
  const auto y = program.make(2, {x}, 4 * kGrainBytes);
  program.engine().evict_all();
  const auto right = program.source(6, 3 * kGrainBytes);
  program.release(left);
  ASSERT_EQ(program.pool().free_bytes(), 6 * kGrainBytes);
  ASSERT_EQ(program.pool().largest_hole_bytes(), 3 * kGrainBytes) << "x lies in the middle";
  EXPECT_EQ(program.read(y), Program::result(2, {1}));
  EXPECT_EQ(program.read(x), 1U);
  EXPECT_EQ(program.read(right), 6U);
  program.engine().validate();
}

}  // namespace
}  // namespace coop
