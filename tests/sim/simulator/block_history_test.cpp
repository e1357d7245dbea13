#include "sim/simulator/block_history.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "sim/generators/generators.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/trace_builder.hpp"

namespace coop::sim {
namespace {

struct Observed {
  BlockHistory history;
  SimulationResult result;

  Observed(const Trace& trace, const char* policy, Bytes budget) : history(trace) {
    result =
        simulate(trace, {.policy = policy, .budget = budget, .engine = {.observer = &history}});
    history.finish();
  }
  [[nodiscard]] std::size_t count(BlockUse use) const {
    const auto& spans = history.spans();
    return static_cast<std::size_t>(std::count_if(
        spans.begin(), spans.end(), [&](const BlockSpan& span) { return span.use == use; }));
  }
};

// source 4 KiB, then a chain of three calls, each making 1 MiB from the one before; only the last stays.
Trace chain() {
  TraceBuilder builder;
  StorageNumber last = builder.add_source(4_KiB);
  builder.begin_step();
  for (int i = 0; i < 3; ++i) {
    const NewStorage output{.bytes = 1_MiB};
    const StorageNumber made = builder.add_call({.op = builder.name("op"),
                                                 .cost_ns = 100,
                                                 .workspace_bytes = 2_MiB,
                                                 .reads = {&last, 1},
                                                 .outputs = {&output, 1}});
    builder.release(last);
    last = made;
    if (i == 0) builder.annotate(builder.name("backward"));
  }
  return builder.finish();
}

TEST(BlockHistory, TellsWhatBlocksAreForAndWhen) {
  const Observed run(chain(), "coop", 16_MiB);
  EXPECT_EQ(run.count(BlockUse::kSource), 1U);
  EXPECT_EQ(run.count(BlockUse::kActivation), 3U);
  EXPECT_EQ(run.count(BlockUse::kWorkspace), 3U);
  EXPECT_EQ(run.count(BlockUse::kRecomputed), 0U);
  EXPECT_EQ(run.history.end_ns(), 300);
  for (const BlockSpan& span : run.history.spans()) {
    if (span.use != BlockUse::kWorkspace) continue;
    EXPECT_EQ(span.end_ns - span.begin_ns, 100) << "a workspace lasts as long as its operator";
    EXPECT_EQ(span.bytes, 2_MiB);
  }
}

TEST(BlockHistory, MarksStepsAndRemarks) {
  const Observed run(chain(), "coop", 16_MiB);
  ASSERT_EQ(run.history.marks().size(), 2U);
  EXPECT_TRUE(run.history.marks()[0].is_step);
  EXPECT_EQ(run.history.marks()[0].ns, 0);
  EXPECT_FALSE(run.history.marks()[1].is_step);
  EXPECT_EQ(run.history.marks()[1].ns, 100);
}

// What is evicted says for whom, and comes back by the call that made it.
TEST(BlockHistory, TellsWhoNeededTheRoom) {
  TraceBuilder builder;
  const auto call = [&](const char* op, std::initializer_list<StorageNumber> reads, Bytes bytes) {
    const NewStorage output{.bytes = bytes};
    return builder.add_call({.op = builder.name(op),
                             .cost_ns = 100,
                             .reads = {reads.begin(), reads.size()},
                             .outputs = {&output, 1}});
  };
  const StorageNumber source = builder.add_source(1_MiB);
  const StorageNumber first = call("first", {source}, 4_MiB);
  const StorageNumber second = call("second", {source}, 5_MiB);
  builder.release(second);
  call("third", {first}, 1_MiB);
  const Observed run(builder.finish(), "coop", 8_MiB);
  ASSERT_TRUE(run.result.is_ok());

  const auto& spans = run.history.spans();
  const auto evicted = std::find_if(spans.begin(), spans.end(),
                                    [](const BlockSpan& span) { return span.ends_evicted; });
  ASSERT_NE(evicted, spans.end());
  EXPECT_EQ(evicted->call, 1U);
  EXPECT_EQ(evicted->evicted_for, 2U);
  EXPECT_EQ(evicted->evicted_for_bytes, 5_MiB);
  EXPECT_EQ(evicted->return_ns, 100);
  const auto again = std::find_if(spans.begin(), spans.end(), [](const BlockSpan& span) {
    return span.use == BlockUse::kRecomputed;
  });
  ASSERT_NE(again, spans.end());
  EXPECT_EQ(again->storage, evicted->storage);
  EXPECT_EQ(again->call, 1U);
  EXPECT_LT(evicted->end_event, again->begin_event);
}

class BlockHistoryOfNetworks : public ::testing::TestWithParam<const char*> {};

// In a budget that binds: no two blocks ever share an address, all lie in the pool, and evictions are
// those that the result counts.
TEST_P(BlockHistoryOfNetworks, IsAMapWithoutOverlaps) {
  const Trace trace = generate(GetParam(), {.seed = 5, .steps = 2});
  const Bytes budget = measure_demand(trace).peak_bytes * 8 / 10;
  const Observed run(trace, "coop", budget);
  ASSERT_TRUE(run.result.is_ok());
  std::uint64_t evictions = 0;
  for (const StepResult& step : run.result.steps) evictions += step.evictions;
  ASSERT_GT(evictions, 0U);
  EXPECT_GT(run.count(BlockUse::kRecomputed), 0U);

  std::vector<BlockSpan> spans = run.history.spans();
  EXPECT_EQ(std::count_if(spans.begin(), spans.end(),
                          [](const BlockSpan& span) { return span.ends_evicted; }),
            static_cast<std::ptrdiff_t>(evictions));

  // By the engine's events, the most that is there at once is what the engine says.
  std::map<std::uint64_t, Bytes> changes;  // wraps around
  for (const BlockSpan& span : spans) {
    ASSERT_LE(span.begin_event, span.end_event);
    changes[span.begin_event] += span.bytes;
    changes[span.end_event] -= span.bytes;
  }
  Bytes held = 0;
  Bytes most_held = 0;
  for (const auto& [event, change] : changes) most_held = std::max(most_held, held += change);
  EXPECT_EQ(held, 0U);
  EXPECT_EQ(most_held, run.result.most_held_bytes);

  // A sweep over time: at each beginning, the blocks that are there.
  std::stable_sort(spans.begin(), spans.end(),
                   [](const BlockSpan& a, const BlockSpan& b) { return a.begin_ns < b.begin_ns; });
  std::map<Bytes, BlockSpan> there;
  for (const BlockSpan& span : spans) {
    ASSERT_LE(span.begin_ns, span.end_ns);
    ASSERT_LE(span.offset + span.bytes, budget);
    if (span.begin_ns == span.end_ns) continue;
    std::erase_if(there, [&](const auto& entry) { return entry.second.end_ns <= span.begin_ns; });
    const auto right = there.lower_bound(span.offset);
    if (right != there.end()) {
      ASSERT_LE(span.offset + span.bytes, right->first);
    }
    if (right != there.begin()) {
      const BlockSpan& left = std::prev(right)->second;
      ASSERT_LE(left.offset + left.bytes, span.offset);
    }
    there.emplace(span.offset, span);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, BlockHistoryOfNetworks,
                         ::testing::Values("chain", "residual", "transformer", "lstm"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace coop::sim
