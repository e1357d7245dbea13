// What other threads do while one replays, written out; engine_threads_test.cpp has them do anything.
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "support/written_program.hpp"

namespace coop {
namespace {

using testing::Content;
using testing::Program;

// Does something when a Call is run again; how many there have been is passed along.
class WhenReplayed final : public testing::ReplayObserver {
 public:
  void replay_begins(Token /*call*/, const testing::HashOp& /*op*/) override {
    if (then) then(++count);
  }
  int count = 0;
  std::function<void(int)> then;
};

TEST(EngineDuringReplay, NobodyElseEndsALineageThatTakesAReplay) {
  Program program(128, {.most_hidden_calls = 13});
  WhenReplayed replayed;
  program.world().set_observer(replayed);
  const auto weight = program.source(1);
  const auto batch = program.source(2);
  const auto loss = program.make(9, {batch});
  const auto chain = [&](int hidden, Content& expected) {
    auto x = program.make(3, {weight});
    expected = Program::result(3, {1});
    for (int i = 0; i < hidden; ++i) {
      const auto next = program.make(4, {x});
      expected = Program::result(4, {expected});
      program.release(x);
      x = next;
    }
    return x;
  };
  Content expected_a = 0;
  Content expected_b = 0;
  const auto a = chain(20, expected_a);
  const auto b = chain(5, expected_b);
  program.engine().evict_all();
  program.engine().make_resident(loss.storage);
  ASSERT_EQ(program.engine().graph().hidden_count(), 25U) << "as many as there may be";
  replayed.then = [&](int count) {
    if (count != 5) return;
    std::thread([&] {
      program.release(batch);  // one Call less that is not hidden, once it is found to be an orphan
      const std::vector<StorageId> reads{weight.storage};
      RunningCall call = program.engine().begin_call(reads, {});
      program.engine().abort_call(call);
    }).join();
  };
  EXPECT_EQ(program.read(a), expected_a);
  EXPECT_GE(replayed.count, 5);
  replayed.then = nullptr;
  program.engine().validate();
  EXPECT_EQ(program.read(b), expected_b);
}

TEST(EngineDuringReplay, WhatIsThereCanBeAskedFor) {
  Program program(8);
  WhenReplayed replayed;
  program.world().set_observer(replayed);
  const auto source = program.source(1);
  const auto missing = program.make(3, {source});
  program.engine().evict_all();
  replayed.then = [&](int /*count*/) {
    // By an operator, say, that the replay has to wait for.
    std::thread([&] { program.engine().make_resident(source.storage); }).join();
  };
  EXPECT_EQ(program.read(missing), Program::result(3, {1}));
  EXPECT_EQ(replayed.count, 1);
}

TEST(EngineDuringReplay, ATargetThatIsBeingWrittenIsThereInTheEnd) {
  Program program(8);
  WhenReplayed replayed;
  program.world().set_observer(replayed);
  const auto source = program.source(1);
  const auto written = program.make(2, {source});
  const auto missing = program.make(3, {source});
  program.engine().evict_all();
  // Another thread's operator changes a part of it ...
  const std::vector<Write> writes{{written.storage, true}};
  RunningCall other = program.engine().begin_call({}, writes);
  program.world().write(*program.world().block_of(written.token),
                        Program::result(5, {Program::result(2, {1})}));
  replayed.then = [&](int /*count*/) {
    // ... and ends, and needs memory, while this one waits for something else.
    std::thread([&] {
      program.end(other, {.salt = 5, .overwrites = {0}, .cost = 1});
      program.engine().free(program.engine().allocate(to_bytes(4)));
    }).join();
  };
  const std::vector<StorageId> reads{written.storage, missing.storage};
  RunningCall call = program.engine().begin_call(reads, {});
  EXPECT_EQ(replayed.count, 1);
  EXPECT_TRUE(program.engine().is_resident(missing.storage));
  EXPECT_TRUE(program.engine().is_resident(written.storage));
  program.engine().abort_call(call);
}

TEST(EngineDuringReplay, CostsThatAreTooLargeToAddUp) {
  Program program(8);
  const auto source = program.source(1);
  for (int i = 0; i < 3; ++i) {
    const std::vector<StorageId> reads{source.storage};
    RunningCall call = program.engine().begin_call(reads, {});
    const NewOutput output{.block = program.engine().allocate(to_bytes(1)),
                           .storage = program.world().new_storage(),
                           .bytes = to_bytes(1)};
    const auto made = program.engine().end_call(
        call, {.token = program.world().remember({.salt = 1, .makes = {to_bytes(1)}}),
               .cost = 1e308,
               .is_replayable = true,
               .outputs = {&output, 1}});
    program.engine().release(made.front());
  }
  EXPECT_LT(program.engine().now(), 1e16);
}

TEST(EngineDuringReplay, WhatIsRunAgainMustNotBeginOthers) {
  Program program(8);
  WhenReplayed replayed;
  program.world().set_observer(replayed);
  const auto source = program.source(1);
  const auto x = program.make(2, {source});
  program.engine().evict_all();
  replayed.then = [&](int) {
    const std::vector<StorageId> reads{source.storage};  // which is there
    EXPECT_THROW(program.engine().begin_call(reads, {}), InvalidArgument);
    EXPECT_THROW(program.engine().make_resident(source.storage), InvalidArgument);
  };
  EXPECT_EQ(program.read(x), Program::result(2, {1}));
  EXPECT_EQ(replayed.count, 1);
}

}  // namespace
}  // namespace coop
