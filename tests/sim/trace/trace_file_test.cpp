#include "sim/trace/trace_file.hpp"

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/generators/generators.hpp"
#include "sim/trace/gzip.hpp"
#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_builder.hpp"
#include "support/recorded_logs.hpp"

namespace coop::sim {
namespace {

// One of everything. docs/trace-format.md shows the same.
constexpr const char* kExample =
    "coop-trace 1\n"
    "name 1 weight\n"
    "source 0 4096 1\n"
    "source 1 1024\n"
    "step\n"
    "name 2 aten.linear\n"
    "name 3 layers.0\n"
    "call 2 3 1520.5 reads 1 0 makes 2:1024 workspace 65536\n"
    "name 4 aten.dropout\n"
    "call 4 3 310 reads 2 makes 3:1024 4:256 random\n"
    "release 2\n"
    "name 5 backward\n"
    "annotate 5\n"
    "name 6 copy_and_count\n"
    "call 6 0 12 reads 3 changes 0 overwrites 1 makes-source 5:8 once\n"
    "export 3\n"
    "pin 4\n"
    "unpin 4\n"
    "release 4\n"
    "end 12\n";

std::string complaint_about(const std::string& text) {
  try {
    parse_trace(text, "some.trace");
    return "";
  } catch (const TraceError& error) {
    return error.what();
  }
}

TEST(TraceFile, ExampleReadsBackAsItWas) {
  const Trace trace = parse_trace(kExample, "example");
  EXPECT_EQ(trace.call_count(), 3U);
  EXPECT_EQ(trace.storages().size(), 6U);
  EXPECT_EQ(format_trace(trace), kExample);
}

TEST(TraceFile, ExampleIsTheOneInTheDocument) {
  const std::string document = read_text_file(testing::repository() / "docs/trace-format.md");
  EXPECT_NE(document.find("```\n" + std::string(kExample) + "```\n"), std::string::npos);
}

TEST(TraceFile, CommentsAreSkipped) {
  EXPECT_EQ(parse_trace("coop-trace 1\n# ResNet-50\nstep\n#\nend 1\n", "x"),
            parse_trace("coop-trace 1\nstep\nend 1\n", "x"));
}

TEST(TraceFile, CostsKeepEveryBit) {
  TraceBuilder builder;
  const NameNumber op = builder.name("op");
  const std::vector<double> costs{0,       0.1,
                                  1.0 / 3, 1e18,
                                  5e-324,  123456789.123456789,
                                  918847,  std::numeric_limits<double>::epsilon()};
  for (const double cost : costs) builder.add_call({.op = op, .cost_ns = cost});
  const Trace trace = builder.finish();
  EXPECT_EQ(parse_trace(format_trace(trace), "x"), trace);
}

TEST(TraceFile, EveryGeneratorReadsBackAsItWas) {
  for (const Generator& generator : known_generators()) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(std::string(generator.name) + " seed " + std::to_string(seed));
      const Trace trace = generator.generate({.seed = seed});
      const std::string text = format_trace(trace);
      EXPECT_EQ(parse_trace(text, "x"), trace);
      EXPECT_LT(text.size(), 120 * trace.call_count()) << "a trace should be compact";
    }
  }
}

TEST(TraceFile, EveryCutIsNoticed) {
  const std::string text = kExample;
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(complaint_about(text.substr(0, size)), "") << "cut after " << size << " bytes";
  }
}

TEST(TraceFile, EveryMissingLineIsNoticed) {
  const std::string text = kExample;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    const std::string without = text.substr(0, begin) + text.substr(end);
    EXPECT_NE(complaint_about(without), "") << "without " << text.substr(begin, end - begin);
    begin = end;
  }
}

struct Broken {
  const char* lines;  // behind the header
  const char* says;
};

TEST(TraceFile, BrokenLinesAreNamed) {
  const std::vector<Broken> cases{
      {"dance 1\n", "some.trace:2: unknown instruction 'dance'"},
      {"\n", "some.trace:2: an empty line"},
      {"step 1\n", "more on the line than belongs there: '1'"},
      {"source 0\n", "the line has no size"},
      {"source\n", "the line has no storage"},
      {"source 0  5\n", "a blank too many where size belongs"},
      {"source 0 5 \n", "a blank too many where name belongs"},
      {"source 0 -5\n", "the size '-5' is negative"},
      {"source 0 5x\n", "the size '5x' is not a whole number"},
      {"source 0 1.5\n", "the size '1.5' is not a whole number"},
      {"source 0 99999999999999999999\n", "the size '99999999999999999999' is too large"},
      {"source 0 9999999999999999\n", "larger than any memory"},
      {"source 1 5\n", "new storage 1 where the next one is 0"},
      {"source 0 5\nsource 0 5\n", "some.trace:3: new storage 0 where the next one is 1"},
      {"source 0 5 1\n", "there is no name 1"},
      {"source 4294967296 5\n", "the storage '4294967296' is too large"},
      {"name 1\n", "the line has no name"},
      {"name 1 \n", "the line has no name"},
      {"name 2 a\n", "name 2 where the next one is 1"},
      {"name 1 a\nname 2 a\n", "some.trace:3: duplicate name 'a'"},
      {"name 1 a\tb\n", "control character"},
      {"release 0\n", "releases storage 0, which does not exist"},
      {"source 0 5\nrelease 0\nrelease 0\n", "some.trace:4: releases storage 0, which has been"},
      {"source 0 5\nrelease 0 0\n", "more on the line"},
      {"call\n", "the line has no operator"},
      {"name 1 a\ncall 1\n", "the line has no module"},
      {"name 1 a\ncall 1 0\n", "the line has no cost"},
      {"name 1 a\ncall 1 0 fast\n", "the cost 'fast' is not a number"},
      {"name 1 a\ncall 1 0 inf\n", "the cost 'inf' is not a number"},
      {"name 1 a\ncall 1 0 nan\n", "the cost 'nan' is not a number"},
      {"name 1 a\ncall 1 0 -1\n", "the cost '-1' is negative"},
      {"name 1 a\ncall 1 0 1e19\n", "between 0 and 1e18"},
      {"name 1 a\ncall 1 0 1e999\n", "the cost '1e999' is too large"},
      {"name 1 a\ncall 0 0 1\n", "needs the name of its operator"},
      {"name 1 a\ncall 1 0 1 5\n", "a number that belongs to nothing: '5'"},
      {"name 1 a\ncall 1 0 1 reads 5\n", "reads storage 5, which does not exist"},
      {"name 1 a\ncall 1 0 1 makes 0\n", "no size for output '0'"},
      {"name 1 a\ncall 1 0 1 makes 0:\n", "the size '' is not a whole number"},
      {"name 1 a\ncall 1 0 1 makes 0:1:\n", "the name '' is not a whole number"},
      {"name 1 a\ncall 1 0 1 makes 1:1\n", "new storage 1 where the next one is 0"},
      {"name 1 a\ncall 1 0 1 makes 0:1 0:1\n", "new storage 0 where the next one is 1"},
      {"name 1 a\ncall 1 0 1 eats 0\n", "unknown word in a call: 'eats'"},
      {"name 1 a\ncall 1 0 1 workspace\n", "the line has no size"},
      {"name 1 a\ncall 1 0 1 workspace 5 workspace 5\n", "two workspaces"},
      {"source 0 5\nname 1 a\ncall 1 0 1 changes 0 overwrites 0\n", "writes storage 0 twice"},
      {"end 1\n", "lines are missing"},
      {"end\n", "the line has no count"},
      {"end 0\nstep\n", "some.trace:3: more lines after the end"},
      {"step\n", "some.trace: the file was cut off: it has no line 'end'"},
      {"step\nend 1", "some.trace:3: the file ends within this line"},
      {"source 0 5\npin 0\nend 2\n", "some.trace: at the end 1 storages are pinned"},
  };
  for (const Broken& broken : cases) {
    SCOPED_TRACE(broken.lines);
    const std::string complaint = complaint_about(std::string("coop-trace 1\n") + broken.lines);
    EXPECT_NE(complaint.find(broken.says), std::string::npos) << "says: " << complaint;
    EXPECT_EQ(complaint.find("some.trace"), 0U) << "says: " << complaint;
  }
}

TEST(TraceFile, OtherFilesAreNotTraces) {
  EXPECT_EQ(complaint_about(""), "some.trace: the file is empty");
  EXPECT_EQ(
      complaint_about("{}\n"),
      "some.trace:1: not a trace: the first line is '{}', not 'coop-trace 1' or 'coop-trace 2'");
  EXPECT_EQ(complaint_about("coop-trace 3\n"),
            "some.trace:1: version '3' of the format is not known; there are 1 and 2");
  EXPECT_NE(complaint_about(std::string(1000, '\0') + "\n").find("not a trace"), std::string::npos);
}

// --- files ---

class TraceFileOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("coop-trace-file-") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string complaint_about_file(const std::filesystem::path& path) {
    try {
      read_trace(path);
      return "";
    } catch (const TraceError& error) {
      return error.what();
    }
  }

  std::filesystem::path folder_;
};

TEST_F(TraceFileOnDisk, PlainAndGzipped) {
  const Trace trace = generate("residual", {.seed = 1});
  write_trace(trace, folder_ / "plain.trace");
  write_trace(trace, folder_ / "zipped.trace.gz");
  EXPECT_EQ(read_trace(folder_ / "plain.trace"), trace);
  EXPECT_EQ(read_trace(folder_ / "zipped.trace.gz"), trace);
  EXPECT_LT(std::filesystem::file_size(folder_ / "zipped.trace.gz"),
            std::filesystem::file_size(folder_ / "plain.trace") / 2);
}

TEST_F(TraceFileOnDisk, WhatIsNotThere) {
  EXPECT_NE(complaint_about_file(folder_ / "none").find("none: No such file"), std::string::npos);
  EXPECT_NE(complaint_about_file(folder_).find("is a directory"), std::string::npos);
  const Trace trace = generate("chain", {});
  EXPECT_THROW(write_trace(trace, folder_), TraceError);
  EXPECT_THROW(write_trace(trace, folder_ / "no" / "folder.trace"), TraceError);
}

TEST_F(TraceFileOnDisk, BrokenGzip) {
  const std::string whole = gzip(kExample);
  write_text_file(folder_ / "cut", whole.substr(0, whole.size() - 1));
  const std::string complaint = complaint_about_file(folder_ / "cut");
  EXPECT_NE(complaint.find("cut: broken gzip: the file ends too early"), std::string::npos)
      << complaint;

  EXPECT_EQ(gunzip(whole), kExample);
  for (std::size_t size = 2; size < whole.size(); ++size) {
    EXPECT_THROW(gunzip(whole.substr(0, size)), TraceError) << "cut after " << size;
  }
  constexpr std::size_t kHeader = 10;
  for (std::size_t at = kHeader; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_THROW(gunzip(flipped), TraceError) << "a flipped bit at " << at;
  }
  EXPECT_THROW(gunzip(whole + "junk"), TraceError);
  EXPECT_EQ(gunzip(gzip("one\n") + gzip("two\n")), "one\ntwo\n") << "gzip allows several parts";
  EXPECT_EQ(gunzip(gzip("")), "");
}

TEST(Gzip, IsUnpackedPieceByPiece) {
  // 65536: as long as what is unpacked at a time.
  for (const std::size_t length : {0U, 1U, 65535U, 65536U, 65537U, 2 * 65536U}) {
    const std::string text(length, 'x');
    const std::string zipped = gzip(text) + gzip("and more");
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, zipped.size()}) {
      Gunzip file;
      std::string unpacked;
      for (std::size_t at = 0; at < zipped.size(); at += size) {
        ASSERT_TRUE(file.add(std::string_view(zipped).substr(at, size), unpacked, length + 8));
      }
      file.finish();
      ASSERT_EQ(unpacked, text + "and more") << length << " bytes in pieces of " << size;
    }
  }
}

TEST_F(TraceFileOnDisk, NoMoreIsReadThanMayBe) {
  const std::string text(200'000, 'x');
  for (const char* name : {"plain", "zipped.gz"}) {
    const auto path = folder_ / name;
    write_text_file(path, text);
    EXPECT_EQ(read_text_file(path, text.size()), text);
    EXPECT_THROW(read_text_file(path, text.size() - 1), TooMuchText) << name;
    EXPECT_THROW(read_text_file(path, 0), TooMuchText) << name;
    try {
      read_text_file(path, 100'000);
    } catch (const TooMuchText& error) {
      EXPECT_EQ(error.what(), path.string() + ": more than 97.7 KiB of text");
    }
  }
  // Sixteen mebibytes in sixteen kilobytes; what is taken is what may be read.
  const std::string bomb = gzip(std::string(16_MiB, '\0'));
  Gunzip file;
  std::string unpacked;
  EXPECT_FALSE(file.add(bomb, unpacked, 100'000));
  EXPECT_LE(unpacked.capacity(), 200'000U);
}

}  // namespace
}  // namespace coop::sim
