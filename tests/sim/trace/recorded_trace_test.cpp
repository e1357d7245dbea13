// What recordings have that other traces do not: how it is written, read, refused and simulated.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/simulator/decisions.hpp"
#include "sim/simulator/demand.hpp"
#include "sim/simulator/simulator.hpp"
#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_file.hpp"
#include "support/recorded_logs.hpp"

namespace coop::sim {
namespace {

// One of everything. docs/trace-format.md shows the same.
constexpr const char* kExample =
    "coop-trace 2\n"
    "name 1 coop\n"
    "recorded 8388608 65536 100 1 decisions\n"
    "foreign 0 4096\n"
    "block 0 1024 0\n"
    "adopt 1 1024 0\n"
    "step\n"
    "name 2 aten::addmm\n"
    "call 2 0 1520.5 reads 1 0 makes 2:1024 expects 1490 memory +65536 =0 -0\n"
    "begin 0 changes 0\n"
    "name 3 aten::native_batch_norm\n"
    "call 3 0 310 reads 2 makes 3:1024 4:256 memory =0 =1\n"
    "name 4 aten::native_batch_norm (side effect)\n"
    "finish 0 4 0 0 once\n"
    "evicted 2\n"
    "fails\n"
    "block 1 1073741824 0 stays\n"
    "free 1\n"
    "begin 1 reads 3\n"
    "room 2 1024 1\n"
    "block 3 512 7.5\n"
    "name 5 mine::op\n"
    "finish 1 5 0 12 makes-source 5:500@3 memory =0 random\n"
    "begin 2 overwrites 5\n"
    "abort 2\n"
    "keep 1\n"
    "again 0\n"
    "settle 2\n"
    "evicted past\n"
    "evict-all\n"
    "bring 3\n"
    "compact\n"
    "end 25\n";

std::string complaint_about(const std::string& text) {
  try {
    parse_trace(text, "some.trace");
    return "";
  } catch (const TraceError& error) {
    return error.what();
  }
}

TEST(RecordedTrace, ExampleReadsBackAsItWas) {
  const Trace trace = parse_trace(kExample, "example");
  EXPECT_EQ(trace.call_count(), 4U);
  EXPECT_EQ(trace.run_count(), 3U);
  EXPECT_EQ(trace.block_count(), 4U);
  EXPECT_EQ(format_trace(trace), kExample);
}

TEST(RecordedTrace, ExampleIsTheOneInTheDocument) {
  const std::string document = read_text_file(testing::repository() / "docs/trace-format.md");
  EXPECT_NE(document.find("```\n" + std::string(kExample) + "```\n"), std::string::npos);
}

TEST(RecordedTrace, ExampleCanBeSimulated) {
  const Trace trace = parse_trace(kExample, "example");
  for (const Bytes budget : {1_MiB, 8_MiB}) {
    for (const std::size_t steps : {1U, 3U}) {
      const SimulationResult result = simulate(trace, {.budget = budget, .steps = steps});
      ASSERT_TRUE(result.is_ok()) << result.failure->why;
      EXPECT_EQ(result.steps.size(), steps);
      EXPECT_EQ(result.last().base_ns, 1842.5);
    }
  }
}

TEST(RecordedTrace, EveryCutAndEveryMissingLineIsNoticed) {
  const std::string text = kExample;
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(complaint_about(text.substr(0, size)), "") << "cut after " << size << " bytes";
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    const std::string line = text.substr(begin, end - begin);
    // What it was recorded with is no event, and need not be there.
    const bool is_missed = line.find("recorded") != 0;
    const std::string complaint = complaint_about(text.substr(0, begin) + text.substr(end));
    EXPECT_EQ(!complaint.empty(), is_missed) << line;
    begin = end;
  }
}

TEST(RecordedTrace, TheFirstVersionHasNoneOfIt) {
  for (const char* line :
       {"recorded 1 1 1 1", "foreign 0 5", "block 0 5 0", "free 0", "adopt 0 5 0", "begin 0",
        "room 0 5 0", "finish 0 1 0 1", "abort 0", "keep 0", "settle 0", "bring 0", "evict-all",
        "compact", "fails", "evicted past", "again 0"}) {
    const std::string text = std::string("coop-trace 1\nname 1 a\n") + line + "\nend 1\n";
    EXPECT_NE(complaint_about(text).find("some.trace:3: unknown instruction"), std::string::npos)
        << line << ": " << complaint_about(text);
  }
  EXPECT_NE(complaint_about("coop-trace 1\nname 1 a\ncall 1 0 1 memory\nend 1\n")
                .find("unknown word in a call: 'memory'"),
            std::string::npos);
}

TEST(RecordedTrace, WhatNeedsOnlyTheFirstVersionIsWrittenInIt) {
  EXPECT_EQ(format_trace(parse_trace("coop-trace 2\nstep\nend 1\n", "x")),
            "coop-trace 1\nstep\nend 1\n");
}

TEST(RecordedTrace, BrokenLinesAreNamed) {
  struct Broken {
    const char* lines;  // behind the header, a name and a source
    const char* says;
  };
  const std::vector<Broken> cases{
      {"block 1 5 0\n", "new block 1 where the next one is 0"},
      {"block 0 5\n", "the line has no cost"},
      {"block 0 5 1 goes\n", "unknown word about a block: 'goes'"},
      {"block 0 5 -1\n", "the cost '-1' is negative"},
      {"block 0 9999999999999999 0\n", "larger than any memory"},
      {"free 0\n", "frees block 0, which does not exist"},
      {"block 0 5 0\nfree 0\nfree 0\n", "frees block 0, which was freed or is a storage's"},
      {"block 0 5 0\nadopt 1 5 0\nfree 0\n", "frees block 0, which was freed or is a storage's"},
      {"adopt 1 5 0\n", "adopts block 0, which does not exist"},
      {"adopt 1 5\n", "the line has no block"},
      {"begin 1\n", "new run 1 where the next one is 0"},
      {"begin 0 reads 7\n", "reads storage 7, which does not exist"},
      {"begin 0 makes 1:5\n", "more than what it reads and writes"},
      {"begin 0 random\n", "more than what it reads and writes"},
      {"begin 0 changes 0 overwrites 0\n", "writes storage 0 twice"},
      {"room 0 5 0\n", "makes room for run 0, which does not run"},
      {"begin 0 changes 0\nroom 0 5 0\n", "run 0, which writes and cannot begin anew"},
      {"begin 0 reads 0\nroom 1 5 0\n", "new block 1 where the next one is 0"},
      {"abort 0\n", "ends run 0, which does not exist"},
      {"begin 0\nabort 0\nabort 0\n", "ends run 0, which has ended"},
      {"begin 0\nabort 0\nfinish 0 1 0 1\n", "ends run 0, which has ended"},
      {"begin 0\nend 2\n", "at the end 1 runs have not ended"},
      {"begin 0 reads 0\nrelease 0\n", "releases storage 0, which a run uses"},
      {"begin 0\nfinish 0 1 0 1 reads 0\n", "what it reads and writes, where a run ends"},
      {"begin 0\nfinish 0 1 0 1 workspace 5\n", "a workspace or an expected cost"},
      {"begin 0\nfinish 0 1 0 1 makes 1:5\n", "makes a storage of block"},
      {"begin 0\nblock 0 5 0\nfinish 0 1 0 1 makes 1:5@0\n", "an output without memory"},
      {"begin 0\nblock 0 5 0\nfinish 0 1 0 1 makes 1:5@0 2:5@0 memory =0 =1\n",
       "two storages in block 0"},
      {"call 1 0 1 makes 1:5@0 memory =0\n", "a storage in a block, and not of a run"},
      {"call 1 0 1 makes 1:5 memory\n", ""},
      {"call 1 0 1 makes 1:5 memory +4 -0\n", "an output without memory"},
      {"call 1 0 1 makes 1:5 memory =0 =0\n", "memory for an output that is not there, or has"},
      {"call 1 0 1 makes 1:5 memory =1\n", "memory for an output that is not there, or has"},
      {"call 1 0 1 memory +5\n", "does not give back all memory"},
      {"call 1 0 1 memory +5 -0 -0\n", "gives memory back that it does not have"},
      {"call 1 0 1 memory -0\n", "gives memory back that it does not have"},
      {"call 1 0 1 memory +0 -0\n", "a piece of memory of no bytes"},
      {"call 1 0 1 memory +x\n", "the memory 'x' is not a whole number"},
      {"call 1 0 1 memory 5\n", "a number that belongs to nothing: '5'"},
      {"call 1 0 1 expects 5\n", "says nothing without its memory"},
      {"call 1 0 1 expects inf memory +1 -0\n", "the cost 'inf' is not a number"},
      {"fails\nstep\n", "what comes after 'fails' must be something that can"},
      {"fails\nend 2\n", "after 'fails' nothing comes"},
      {"fails\ncall 1 0 1\n", "what comes after 'fails'"},
      {"fails\nblock 0 5 0\nadopt 1 5 0\n", "adopts block 0, which could not be had"},
      {"fails\nforeign 1 5\nkeep 1\n", "keeps storage 1, which could not be had"},
      {"fails\nbegin 0\nfinish 0 1 0 1\n", "finishes run 0, which could not begin"},
      {"recorded 1 1 1 1\n", "comes first, and once"},
      {"evicted 5\n", "evicts storage 5, which does not exist"},
      {"evicted\n", "the line has no storage"},
      {"again 0\n", "runs call 0 again, which does not exist"},
      {"compact 0\n", "more on the line than belongs there"},
  };
  for (const Broken& broken : cases) {
    SCOPED_TRACE(broken.lines);
    const std::string complaint =
        complaint_about(std::string("coop-trace 2\nname 1 a\nsource 0 5\n") + broken.lines);
    EXPECT_NE(complaint.find(broken.says), std::string::npos) << "says: " << complaint;
  }
  for (const char* line :
       {"recorded 1 1 1\n", "recorded 1 1 1 0\n", "recorded 1 1 1 2\n", "recorded 1 1 -1 1\n",
        "recorded 1 1 1 1 early\n", "recorded 1 1 1 1\nrecorded 1 1 1 1\n"}) {
    const std::string text = std::string("coop-trace 2\nname 1 a\n") + line + "end 0\n";
    EXPECT_NE(complaint_about(text), "") << line;
  }
}

// --- in the simulator ---

Trace trace_of(const std::string& lines) {
  std::size_t events = 0;
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    const std::string word = lines.substr(at, lines.find(' ', at) - at);
    if (word != "name" && word != "recorded") ++events;
  }
  return parse_trace("coop-trace 2\nname 1 coop\n" + lines + "end " + std::to_string(events) + "\n",
                     "test");
}

TEST(RecordedTrace, DemandCountsMemoryWhoeverHasIt) {
  const Demand demand =
      measure_demand(trace_of("foreign 0 1000\n"
                              "block 0 100 0\n"
                              "adopt 1 90 0\n"
                              "begin 0\n"
                              "block 1 10 0\n"
                              "block 2 20 0\n"
                              "finish 0 1 0 5 makes 2:15@2 memory +10 =0\n"
                              "free 1\n"
                              "call 1 0 7 makes 3:1 memory +300 -0 +200 =0 -1\n"
                              "release 0\n"));
  EXPECT_EQ(demand.peak_bytes, 1000U + 90 + 15 + 300);
  EXPECT_EQ(demand.peak_event, 8U);
  EXPECT_EQ(demand.base_ns, 12);
  EXPECT_EQ(measure_demand(trace_of("block 0 100 0\nfree 0\nblock 1 50 0\n")).peak_bytes, 100U);
}

TEST(RecordedTrace, WhatFailedThenMayFailAgainOrNot) {
  const Trace trace = trace_of(
      "recorded 4096 0 0 1\n"
      "block 0 2048 0\n"
      "adopt 0 2048 0\n"
      "fails\n"
      "block 1 3072 0\n"
      "free 1\n"
      "fails\n"
      "foreign 1 3072\n"
      "release 1\n"
      "call 1 0 5 reads 0 makes 2:1024 memory =0\n"
      "release 2\n"
      "block 2 2048 0\n"
      "fails\n"
      "begin 0 changes 0\n"
      "abort 0\n"
      "free 2\n");
  for (const Bytes budget : {4096U, 8192U, 65536U}) {
    const SimulationResult result = simulate(trace, {.budget = budget, .steps = 2});
    EXPECT_TRUE(result.is_ok()) << budget << ": " << result.failure->why;
  }
  EXPECT_FALSE(simulate(trace, {.budget = 2560}).is_ok()) << "what did not fail then must not";
}

TEST(RecordedTrace, TheSmallestThatIsEvictedIsAsRecorded) {
  const std::string program =
      "call 1 0 5 makes 0:2048 memory =0\n"
      "evict-all\n"
      "bring 0\n";
  const Trace with_small = trace_of("recorded 1048576 65536 100 1\n" + program);
  const Trace without = trace_of("recorded 1048576 0 100 1\n" + program);
  EXPECT_EQ(simulate(with_small, {.budget = 1_MiB}).last().recomputed_calls, 0U);
  EXPECT_EQ(simulate(without, {.budget = 1_MiB}).last().recomputed_calls, 1U);
  EXPECT_EQ(simulate(with_small, {.budget = 1_MiB, .small_limit = 0}).last().recomputed_calls, 1U);
}

TEST(RecordedTrace, DecisionsAreCompared) {
  const auto compared = [](const std::string& decisions) {
    return compare_decisions(
        trace_of("recorded 4096 0 100 1 decisions\n"
                 "call 1 0 5 makes 0:2560 memory =0\n" +
                 decisions));
  };
  const std::string same =
      "evicted 0\n"
      "call 1 0 5 makes 1:2560 memory =0\n"
      "evicted 1\n"
      "again 0\n"
      "bring 0\n";
  EXPECT_EQ(compared(same).differs_at, std::nullopt);
  EXPECT_EQ(compared(same).count(EventKind::kEvicted), 2U);
  EXPECT_EQ(compared(same).count(EventKind::kAgain), 1U);
  EXPECT_EQ(compared(same + "evicted 0\n").differs_at, 3U) << "one that is not made";
  EXPECT_EQ(compared(same + "evict-all\n").differs_at, 3U) << "one that was not";
  EXPECT_EQ(compared("call 1 0 5 makes 1:2560 memory =0\nevicted 0\nagain 0\nbring 0\n").differs_at,
            1U);
  EXPECT_THROW(compare_decisions(trace_of("recorded 4096 0 100 1\n")), InvalidArgument);
  EXPECT_THROW(compare_decisions(trace_of("step\n")), InvalidArgument);
}

}  // namespace
}  // namespace coop::sim
