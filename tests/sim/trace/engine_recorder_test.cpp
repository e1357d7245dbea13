// What an engine was asked for, recorded, asks the same of the simulator's: it decides the same.
#include "sim/trace/engine_recorder.hpp"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "sim/simulator/decisions.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/trace_file.hpp"
#include "support/draw_program.hpp"
#include "support/program_run.hpp"

namespace coop::sim {
namespace {

using testing::Case;
using testing::Coverage;
using testing::FaultPlan;
using testing::ProgramRun;
using testing::ProgramText;
using testing::RunOptions;

EngineRecorder::With with_of(const RunOptions& options) {
  return {.budget = options.pool_bytes,
          .small_limit = options.small_limit,
          .most_slowdown = options.engine.most_slowdown,
          .policy = options.policy};
}

EngineRecorder::Facts describe_call(const CallResult& /*result*/) { return {.op = "op"}; }

struct Totals {
  std::uint64_t evictions = 0;
  std::uint64_t replays = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t runs = 0;   // operators that took more than a line
  std::uint64_t calls = 0;  // all of them
};

void record_and_compare(const RunOptions& options, const ProgramText& text, Totals& totals) {
  Coverage coverage;
  FaultPlan no_faults;
  ProgramRun run(options, coverage, no_faults);
  EngineRecorder recorder(with_of(options), describe_call, EngineRecorder::Decisions::kNoted);
  recorder.attach_to(run.engine());
  run.run(text);
  if (::testing::Test::HasFailure()) return;
  const Trace trace = recorder.detach();

  ASSERT_EQ(parse_trace(format_trace(trace), "again"), trace);
  const ComparedDecisions compared = compare_decisions(trace);
  ASSERT_EQ(compared.out_of_memory, "");
  ASSERT_GE(compared.count(EventKind::kEvicted), run.engine().eviction_stats().evictions);
  ASSERT_EQ(compared.count(EventKind::kAgain), run.engine().stats().replays);
  if (compared.differs_at) {
    const std::size_t at = *compared.differs_at;
    const auto shown = [&](const std::vector<TraceEvent>& all) {
      return at < all.size() ? describe(trace, all[at]) : "nothing more";
    };
    FAIL() << "decision " << at << ": recorded " << shown(compared.recorded) << ", simulated "
           << shown(compared.simulated);
  }
  totals.evictions += compared.count(EventKind::kEvicted);
  totals.replays += compared.count(EventKind::kAgain);
  totals.out_of_memory += run.out_of_memory();
  totals.runs += trace.run_count();
  totals.calls += trace.call_count();
}

TEST(EngineRecorder, TheSimulatorDecidesAsTheEngineDid) {
  Totals totals;
  testing::for_each_case(testing::scaled(testing::is_full_scale() ? 3'000 : 150), [&](Case& one) {
    testing::TextOptions text_options;
    text_options.events = one.random.between(20, 120);
    const ProgramText text = draw_program(one.random, text_options);
    RunOptions options;
    options.pool_bytes = to_bytes(one.random.between(40, 110));
    options.is_stressed = one.random.chance(0.1);
    if (one.random.chance(0.3)) options.small_limit = kGrainBytes;
    options.engine.most_slowdown = one.random.chance(0.2) ? 5 : 0;
    options.is_traced = one.is_traced;
    for (const PolicyTraits& policy : known_policies()) {
      SCOPED_TRACE(std::string(policy.name));
      options.policy = policy.name.data();
      record_and_compare(options, text, totals);
      if (::testing::Test::HasFailure()) return;
    }
  });
  if (testing::wanted_seed()) return;
  std::printf("%llu evictions, %llu replays, %llu times out of memory, %llu runs, %llu calls\n",
              static_cast<unsigned long long>(totals.evictions),
              static_cast<unsigned long long>(totals.replays),
              static_cast<unsigned long long>(totals.out_of_memory),
              static_cast<unsigned long long>(totals.runs),
              static_cast<unsigned long long>(totals.calls));
  EXPECT_GT(totals.evictions, 1000U);
  EXPECT_GT(totals.replays, 1000U);
  EXPECT_GT(totals.out_of_memory, 0U);
  EXPECT_GT(totals.runs, 0U);
  EXPECT_LT(totals.runs, totals.calls / 2) << "most operators should be one line";
}

// --- by hand ---

class Recording : public ::testing::Test {
 protected:
  Recording()
      : policy_(make_policy("coop")),
        pool_({.bytes = to_bytes(10), .small_limit = 0}, backing_),
        world_(to_bytes(4096)),
        engine_(pool_, *policy_, world_) {
    world_.set_engine(engine_, pool_);
  }

  void begin(EngineRecorder::Decisions decisions = EngineRecorder::Decisions::kIgnored) {
    recorder_ = std::make_unique<EngineRecorder>(
        EngineRecorder::With{.budget = to_bytes(10), .policy = "coop"},
        [&](const CallResult& /*result*/) -> EngineRecorder::Facts {
          return {.op = "f", .module = "layer", .is_random = true};
        },
        decisions);
    recorder_->attach_to(engine_);
  }
  // Without its first two lines and its last.
  std::string end() {
    const std::string text = format_trace(recorder_->detach());
    const std::size_t first = text.find("recorded");
    const std::size_t second = text.find('\n', first) + 1;
    return text.substr(second, text.rfind("end ") - second);
  }

  BlockId block(Grains grains, double cost = 0) {
    const BlockId taken = engine_.allocate(to_bytes(grains), cost);
    world_.write(taken, 1);
    return taken;
  }
  StorageId source(Grains grains) {
    return engine_.add_source(world_.new_storage(), to_bytes(grains), block(grains));
  }
  StorageId end(RunningCall& call, BlockId output, Grains grains) {
    const NewOutput made{
        .block = output, .storage = world_.new_storage(), .bytes = to_bytes(grains)};
    const Token token = world_.remember({.salt = 1, .makes = {to_bytes(grains)}, .cost = 10});
    return engine_
        .end_call(call, {.token = token, .cost = 10, .is_replayable = true, .outputs = {&made, 1}})
        .front();
  }
  StorageId make(Grains grains, StorageId from) {
    RunningCall call = engine_.begin_call({&from, 1}, {});
    return end(call, block(grains, 5), grains);
  }

  FakeBacking backing_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  testing::HashWorld world_;
  Engine engine_;
  std::unique_ptr<EngineRecorder> recorder_;
};

TEST_F(Recording, AnOperatorIsOneLine) {
  begin();
  recorder_->begin_step();
  const StorageId base = source(1);
  const StorageId made = make(2, base);
  recorder_->annotate("backward");
  engine_.release(made);
  EXPECT_EQ(end(),
            "step\n"
            "block 0 512 0\n"
            "adopt 0 512 0\n"
            "name 2 f\n"
            "name 3 layer\n"
            "call 2 3 10 reads 0 makes 1:1024 expects 5 memory =0 random\n"
            "name 4 backward\n"
            "annotate 4\n"
            "release 1\n");
}

TEST_F(Recording, AStorageHasTheNameThatItIsGivenLater) {
  const StorageId from_before = source(1);
  begin();
  const StorageId base = source(1);
  RunningCall call = engine_.begin_call({&base, 1}, {});
  recorder_->name_storage(base, "parameter fc.weight");
  recorder_->name_storage(from_before, "buffer mean");
  const StorageId made = end(call, block(2, 5), 2);
  recorder_->name_storage(made, "gradient fc.weight");
  EXPECT_THROW(recorder_->name_storage(made, ""), TraceError);
  engine_.release(made);
  recorder_->name_storage(made, "of nobody");
  EXPECT_EQ(end(),
            "block 0 512 0\n"
            "name 2 parameter fc.weight\n"
            "name 3 buffer mean\n"
            "adopt 0 512 0 3\n"
            "block 1 512 0\n"
            "adopt 1 512 1 2\n"
            "name 4 f\n"
            "name 5 layer\n"
            "name 6 gradient fc.weight\n"
            "call 4 5 10 reads 1 makes 2:1024:6 expects 5 memory =0 random\n"
            "release 2\n"
            "name 7 of nobody\n");
}

TEST_F(Recording, WhatAnOperatorTakesAndGivesBackIsPartOfIt) {
  begin();
  RunningCall call = engine_.begin_call({}, {});
  const BlockId first = block(2, 5);
  const BlockId output = block(1, 5);
  const BlockId second = block(1, 5);
  engine_.free(second);
  engine_.free(first);
  end(call, output, 1);
  EXPECT_EQ(end(),
            "name 2 f\n"
            "name 3 layer\n"
            "call 2 3 10 makes 0:512 expects 5 memory +1024 =0 +512 -1 -0 random\n");
}

TEST_F(Recording, AnOperatorDuringWhichSomethingElseHappensIsARun) {
  begin();
  const StorageId base = source(1);
  RunningCall call = engine_.begin_call({&base, 1}, {});
  const BlockId workspace = block(2);
  const BlockId output = block(1, 5);
  const StorageId other = source(1);
  end(call, output, 1);
  engine_.free(workspace);
  engine_.release(other);
  EXPECT_EQ(end(),
            "block 0 512 0\n"
            "adopt 0 512 0\n"
            "begin 0 reads 0\n"
            "block 1 1024 0\n"
            "block 2 512 5\n"
            "block 3 512 0\n"
            "adopt 1 512 3\n"
            "name 2 f\n"
            "name 3 layer\n"
            "finish 0 2 3 10 makes 2:512@2 memory +1024 =0 +512 random\n"
            "free 1\n"
            "release 1\n");
}

// Its memory was taken for that of the side effect, and was not there when it ran again.
TEST_F(Recording, MemoryIsForTheOperatorAndNotForItsSideEffect) {
  begin();
  const StorageId base = source(1);
  const Write write{.storage = base};
  RunningCall call = engine_.begin_call({}, {});
  RunningCall side_effect = engine_.begin_call({}, {&write, 1});
  const BlockId workspace = block(2, 5);
  const BlockId output = block(1, 5);
  engine_.free(workspace);
  end(call, output, 1);
  engine_.end_call(side_effect, {});
  const std::string text = end();
  EXPECT_NE(text.find("finish 0 2 3 10 makes 1:512@2 memory +1024 =0 -0 random\n"),
            std::string::npos)
      << text;
}

TEST_F(Recording, WhatFailsIsWrittenDownAndUndone) {
  begin();
  const StorageId base = source(8);
  EXPECT_THROW(engine_.allocate(to_bytes(3)), OutOfMemory);
  EXPECT_THROW(engine_.add_foreign_source(world_.new_storage(), to_bytes(4), to_bytes(4)),
               OutOfMemory);
  const Write write{.storage = base};
  RunningCall call = engine_.begin_call({}, {&write, 1});
  engine_.abort_call(call);
  EXPECT_EQ(end(),
            "block 0 4096 0\n"
            "adopt 0 4096 0\n"
            "fails\n"
            "block 1 1536 0\n"
            "free 1\n"
            "fails\n"
            "foreign 1 2048\n"
            "release 1\n"
            "begin 0 changes 0\n"
            "abort 0\n");
}

TEST_F(Recording, DecisionsComeBeforeWhatTheyAreFor) {
  begin(EngineRecorder::Decisions::kNoted);
  const StorageId base = source(1);
  const StorageId made = make(5, base);
  const StorageId other = make(5, base);  // for which the first one goes
  engine_.make_resident(made);
  engine_.evict_all();
  engine_.end_lineage(made);
  engine_.release(other);
  const std::string text = end();
  const std::size_t calls = text.find("call");
  EXPECT_EQ(text.substr(calls),
            "call 2 3 10 reads 0 makes 1:2560 expects 5 memory =0 random\n"
            "evicted 1\n"
            "call 2 3 10 reads 0 makes 2:2560 expects 5 memory =0 random\n"
            "evicted 2\n"
            "again 0\n"
            "bring 1\n"
            "evicted 1\n"
            "evict-all\n"
            "again 0\n"
            "settle 1\n"
            "release 2\n");
}

TEST_F(Recording, WhatWasThereBeforeComesFromOutside) {
  const StorageId base = source(1);
  const StorageId made = make(2, base);
  const BlockId raw = block(1);
  engine_.keep_in_place(base);
  begin(EngineRecorder::Decisions::kNoted);
  make(1, made);
  engine_.free(raw);
  const Trace trace = recorder_->detach();
  ASSERT_TRUE(trace.recorded_with());
  EXPECT_TRUE(trace.recorded_with()->is_late);
  const std::string text = format_trace(trace);
  EXPECT_NE(text.find("recorded 5120 0 0 1 decisions late\n"
                      "block 0 512 0\n"
                      "block 1 512 0\n"
                      "adopt 0 512 1\n"
                      "keep 0\n"
                      "block 2 1024 0\n"
                      "adopt 1 1024 2\n"),
            std::string::npos)
      << text;
}

TEST_F(Recording, WhatOthersAreInTheMiddleOfCounts) {
  RunningCall before = engine_.begin_call({}, {});
  const BlockId output = block(1);
  begin();
  const StorageId made = end(before, output, 1);
  RunningCall after = engine_.begin_call({&made, 1}, {});
  EXPECT_EQ(end(),
            "block 0 512 0\n"
            "adopt 0 512 0\n"
            "begin 0 reads 0\n"
            "abort 0\n");
  engine_.abort_call(after);
}

TEST_F(Recording, RemarksAreNames) {
  begin();
  EXPECT_THROW(recorder_->annotate(""), TraceError);
  EXPECT_THROW(recorder_->annotate("two\nlines"), TraceError);
  recorder_->annotate("fine");
  EXPECT_EQ(end(), "name 2 fine\nannotate 2\n");
}

}  // namespace
}  // namespace coop::sim
