#include "core/forecast/step_log.hpp"

#include <gtest/gtest.h>

namespace coop {
namespace {

using Kind = StepRecord::Kind;

constexpr Bytes kLarge = 1000;
constexpr Bytes kSmall = 10;

StorageUse storage(std::uint64_t serial, Bytes bytes = kLarge) {
  return {.storage = serial, .bytes = bytes};
}

void run(StepLog& log, std::vector<StorageUse> reads, std::vector<StorageUse> writes,
         std::vector<StorageUse> makes) {
  log.call_ends({.cost = 5, .is_replayable = true}, reads, writes, makes);
}

TEST(StepLog, WritesDownWhatHappenedBetweenTwoEvents) {
  StepLog log(kSmall, 100, 0);
  log.source_comes(storage(1));
  run(log, {storage(1)}, {}, {storage(2)});
  log.storage_goes(storage(1));
  // The step begins here: 2 is there, 1 is gone.
  const std::uint64_t begin = 3;
  log.source_comes(storage(3));
  run(log, {storage(2), storage(3)}, {storage(9)}, {storage(4), storage(5, kSmall)});
  log.storage_goes(storage(3));
  run(log, {storage(4)}, {}, {});
  const StepRecord step = log.record(begin, begin + 4, 2);
  ASSERT_EQ(step.calls.size(), 2U);
  ASSERT_EQ(step.events.size(), 4U);
  EXPECT_EQ(step.events[0].kind, Kind::kSource);
  EXPECT_EQ(step.events[1].kind, Kind::kCall);
  EXPECT_EQ(step.events[2].kind, Kind::kRelease);
  EXPECT_EQ(step.events[0].subject, step.events[2].subject);
  ASSERT_EQ(step.reads_of(0).size(), 2U);
  EXPECT_TRUE(step.storages[step.reads_of(0)[0]].is_there) << "made before the step";
  EXPECT_FALSE(step.storages[step.reads_of(0)[1]].is_there);
  ASSERT_EQ(step.writes_of(0).size(), 1U);
  EXPECT_TRUE(step.storages[step.writes_of(0)[0].storage].is_there) << "never seen before";
  ASSERT_EQ(step.made_by(0).size(), 2U);
  EXPECT_EQ(step.storages[step.made_by(0)[1]].bytes, kSmall);
  EXPECT_EQ(step.reads_of(1)[0], step.made_by(0)[0]);
  EXPECT_EQ(step.made_by(1).size(), 0U);
}

TEST(StepLog, ForgetsAllButTheLatest) {
  StepLog log(kSmall, 100, 0);
  for (std::uint64_t i = 1; i <= 9; ++i) {
    run(log, {}, {}, {storage(i)});
    log.storage_goes(storage(i));
  }
  log.keep_latest(4);
  EXPECT_FALSE(log.has_call(5));
  EXPECT_TRUE(log.has_call(6));
  EXPECT_EQ(log.calls(), 9U);
  const std::uint64_t begin = log.call(8).least_at;  // of two calls and what died after each
  const StepRecord step = log.record(begin, begin + 4, 8);
  ASSERT_EQ(step.calls.size(), 2U);
  ASSERT_EQ(step.made_by(1).size(), 1U);
  EXPECT_EQ(step.storages[step.made_by(1)[0]].bytes, kLarge);
  log.keep_latest(100);
  EXPECT_TRUE(log.has_call(6)) << "what is there stays";
}

TEST(StepLog, KnowsWhereTheLeastWasAlive) {
  StepLog log(kSmall, 100, 0);
  run(log, {}, {}, {storage(1), storage(2, kSmall)});
  EXPECT_EQ(log.live_bytes(), 1000) << "what is small does not count";
  log.storage_goes(storage(1));
  log.source_comes(storage(3));
  EXPECT_EQ(log.least_bytes(), 0);
  EXPECT_EQ(log.least_at(), 2U) << "after the call and the release";
  run(log, {storage(3)}, {}, {});
  EXPECT_EQ(log.call(2).least_bytes, 0);
  EXPECT_EQ(log.call(2).least_at, 2U);
  EXPECT_EQ(log.least_bytes(), 1000);
}

TEST(StepLog, ForgetsTheOldest) {
  StepLog log(kSmall, 3, 40);
  for (std::uint64_t i = 0; i < 10; ++i) {
    log.source_comes(storage(2 * i));
    run(log, {storage(2 * i)}, {}, {storage((2 * i) + 1)});
    log.storage_goes(storage(2 * i));
  }
  EXPECT_EQ(log.calls(), 50U);
  EXPECT_FALSE(log.has_call(47));
  ASSERT_TRUE(log.has_call(48));
  const StepRecord step = log.record(log.call(49).least_at, log.least_at(), 49);
  EXPECT_EQ(step.calls.size(), 2U);
  EXPECT_EQ(step.reads_of(1).size(), 1U);
}

}  // namespace
}  // namespace coop
