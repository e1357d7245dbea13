// Small logs, and the traces they stand for in our own format.
#include "sim/trace/dtr_log.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/trace/trace_error.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

// A line each, with the fields in this order.
std::string constant(const std::string& name, const std::string& bytes) {
  return R"({"INSTRUCTION":"CONSTANT","NAME":")" + name + "\"}\n" +
         R"({"INSTRUCTION":"MEMORY","NAME":")" + name + R"(","MEMORY":")" + bytes + "\"}\n";
}
std::string call(const std::string& op, const std::string& args, const std::string& results,
                 const std::string& time) {
  return R"({"INSTRUCTION":"CALL","NAME":")" + op + R"(","ARGS":[)" + args + R"(],"RESULT":[)" +
         results + R"(],"TIME":")" + time + "\"}\n";
}
std::string result(const std::string& name, const std::string& bytes,
                   const std::string& alias = "-1") {
  return R"({"INSTRUCTION":"MEMORY","NAME":")" + name + R"(","MEMORY":")" + bytes + "\"}\n" +
         R"({"INSTRUCTION":"ALIAS","NAME":")" + name + R"(","ALIAS":")" + alias + "\"}\n";
}
std::string mutate(const std::string& op, const std::string& args, const std::string& mutated,
                   const std::string& time) {
  return R"({"INSTRUCTION":"MUTATE","NAME":")" + op + R"(","ARGS":[)" + args + R"(],"MUTATE":[)" +
         mutated + R"(],"TIME":")" + time + "\"}\n";
}
std::string release(const std::string& name) {
  return R"({"INSTRUCTION":"RELEASE","NAME":")" + name + "\"}\n";
}
std::string copy(const std::string& kind, const std::string& to, const std::string& from) {
  return R"({"INSTRUCTION":")" + kind + R"(","DST":")" + to + R"(","SRC":")" + from + "\"}\n";
}
std::string annotate(const std::string& text) {
  return R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":")" + text + "\"}\n";
}

std::string read(const std::string& log, Mutation mutation = Mutation::kCopies) {
  const std::string text = format_trace(parse_dtr_log(log, "some.log", mutation));
  const std::string header = "coop-trace 1\n";
  return text.substr(header.size());
}

TEST(DtrLog, CallsAndReleases) {
  const std::string log = annotate("START") + constant("x", "100") +
                          call("f", R"("x","x")", R"("y","z")", "1500") + result("y", "50") +
                          result("z", "0") + release("x") + annotate("BACKWARD") +
                          call("g", R"("y")", "", "7") + release("y");
  EXPECT_EQ(read(log),
            "source 0 100\n"
            "name 1 f\n"
            "call 1 0 1500 reads 0 0 makes 1:50 2:0\n"
            "release 0\n"
            "name 2 BACKWARD\n"
            "annotate 2\n"
            "name 3 g\n"
            "call 3 0 7 reads 1\n"
            "release 1\n"
            "end 6\n")
      << "z still has its name, and is not released";
}

TEST(DtrLog, StorageGoesWithTheLastOfItsNames) {
  const std::string log =
      constant("x", "100") + call("f", R"("x")", R"("y")", "1") + result("y", "50") +
      copy("COPY", "y2", "y") + call("view", R"("y2")", R"("v")", "1") + result("v", "50", "0") +
      release("y") + release("y2") + call("g", R"("v")", "", "1") + release("v");
  EXPECT_EQ(read(log),
            "source 0 100\n"
            "name 1 f\n"
            "call 1 0 1 reads 0 makes 1:50\n"
            "name 2 view\n"
            "call 2 0 1 reads 1\n"
            "name 3 g\n"
            "call 3 0 1 reads 1\n"
            "release 1\n"
            "end 5\n");
}

TEST(DtrLog, CopyFromRenames) {
  const std::string log = constant("x", "100") + constant("y", "50") + copy("COPY_FROM", "x", "y") +
                          copy("COPY_FROM", "y", "y") + release("y") +
                          call("f", R"("x")", "", "1") + release("x");
  EXPECT_EQ(read(log),
            "source 0 100\n"
            "source 1 50\n"
            "release 0\n"
            "name 1 f\n"
            "call 1 0 1 reads 1\n"
            "release 1\n"
            "end 5\n");
}

TEST(DtrLog, MutationAsCopy) {
  // y2 keeps the old contents; x loses its only name.
  const std::string log = constant("x", "100") + constant("y", "50") + copy("COPY", "y2", "y") +
                          mutate("add_", R"("x","y")", "0,1", "9") + call("f", R"("y2")", "", "1");
  EXPECT_EQ(read(log),
            "source 0 100\n"
            "source 1 50\n"
            "name 1 add_\n"
            "call 1 0 9 reads 0 1 makes 2:100 3:50\n"
            "release 0\n"
            "name 2 f\n"
            "call 2 0 1 reads 1\n"
            "end 5\n");
}

TEST(DtrLog, MutationInPlace) {
  // y2 is a name for what is changed, and changes with it.
  const std::string log = constant("x", "100") + constant("y", "50") + copy("COPY", "y2", "y") +
                          mutate("add_", R"("x","y","y2")", "1,2", "9") +
                          call("f", R"("y2")", "", "1");
  EXPECT_EQ(read(log, Mutation::kInPlace),
            "source 0 100\n"
            "source 1 50\n"
            "name 1 add_\n"
            "call 1 0 9 reads 0 changes 1\n"
            "name 2 f\n"
            "call 2 0 1 reads 1\n"
            "end 4\n");
}

TEST(DtrLog, WhatComesBeforeStartDoesNotCount) {
  const std::string log =
      constant("x", "100") + call("f", R"("x")", "", "1") + annotate("START") + constant("x", "5");
  EXPECT_EQ(read(log), "source 0 5\nend 1\n");
}

TEST(DtrLog, FieldsMayComeInAnyOrder) {
  EXPECT_EQ(read(R"({"NAME":"x","INSTRUCTION":"CONSTANT"})"
                 "\n"
                 R"({"MEMORY":"7", "EXTRA": [1,{}], "NAME":"x","INSTRUCTION":"MEMORY"})"
                 "\n"),
            "source 0 7\nend 1\n");
}

// --- broken logs ---

std::string complaint_about(const std::string& log, Mutation mutation = Mutation::kCopies) {
  try {
    parse_dtr_log(log, "some.log", mutation);
    return "";
  } catch (const TraceError& error) {
    return error.what();
  }
}

struct Broken {
  std::string log;
  const char* says;
};

TEST(DtrLog, BrokenLogsAreRefused) {
  const std::string x = constant("x", "100");
  const std::vector<Broken> cases{
      {"", "some.log: the file is empty"},
      {"\n", "some.log:1: not a JSON object"},
      {"[]\n", "some.log:1: not a JSON object"},
      {"{\"INSTRUCTION\":\n", "some.log:1: not a JSON object"},
      {"{} {}\n", "some.log:1: not a JSON object"},
      {"{}\n", "some.log:1: field INSTRUCTION is missing"},
      {R"({"INSTRUCTION":5})"
       "\n",
       "field INSTRUCTION is not a string"},
      {R"({"INSTRUCTION":"DANCE"})"
       "\n",
       "unknown instruction 'DANCE'"},
      {R"({"INSTRUCTION":"RELEASE"})"
       "\n",
       "field NAME is missing"},
      {x.substr(0, x.size() - 1), "some.log:2: the file ends within this line"},
      {x.substr(0, x.find('\n') + 1), "some.log: the log was cut off"},
      {x + release("y"), "some.log:3: 'y' is unknown: never made, or released"},
      {x + release("x") + release("x"), "some.log:4: 'x' is unknown"},
      {x + release("x") + call("f", R"("x")", "", "1"), "some.log:4: 'x' is unknown"},
      {x + x, "some.log:3: 'x' exists already"},
      {constant("", "5"), "a constant without a name"},
      {constant("x", "-5"), "some.log:2: MEMORY '-5' is negative"},
      {constant("x", "5.5"), "MEMORY '5.5' is not a whole number"},
      {constant("x", "1e3"), "MEMORY '1e3' is not a whole number"},
      {constant("x", "99999999999999999999999"), "MEMORY '99999999999999999999999' is too large"},
      {constant("x", "9999999999999999"), "larger than any memory"},
      {x + call("f", R"("x")", "", "-1"), "TIME '-1' is negative"},
      {x + call("f", R"("x")", "", "soon"), "TIME 'soon' is not a number"},
      {x + call("f", R"("x")", "", "1e30"), "between 0 and 1e18"},
      {x + call("", R"("x")", "", "1"), "an operator without a name"},
      {x + call("f", R"("x",5)", "", "1"), "field ARGS has something else than strings"},
      {x + call("f", R"("x")", R"("x")", "1"), "'x' exists already"},
      {x + call("f", R"("x")", R"("y")", "1"), "the log was cut off"},
      {x + call("f", R"("x")", R"("y")", "1") + release("x"), "MEMORY is missing before 'RELEASE'"},
      {x + call("f", R"("x")", R"("y")", "1") + result("z", "5"),
       "MEMORY of 'z' where that of 'y' belongs"},
      {x + call("f", R"("x")", R"("y")", "1") + result("y", "5", "1"),
       "ALIAS '1' where the call has 1 arguments"},
      {x + call("f", R"("x")", R"("y")", "1") + result("y", "5", "-2"), "ALIAS '-2' is negative"},
      {x + call("f", R"("x")", R"("y","y")", "1") + result("y", "5") + result("y", "5"),
       "'y' exists already"},
      {result("x", "5"), "MEMORY belongs behind a CONSTANT or a CALL"},
      {x + copy("COPY", "x", "x"), "'x' exists already"},
      {x + copy("COPY_FROM", "y", "x"), "'y' is unknown"},
      {x + mutate("f", R"("x")", "1", "1"), "MUTATE must be a list of numbers of arguments"},
      {x + mutate("f", R"("x")", "-1", "1"), "MUTATE must be a list of numbers of arguments"},
      {x + mutate("f", R"("x")", "\"0\"", "1"), "MUTATE must be a list of numbers of arguments"},
      {annotate("START") + annotate("START"), "some.log:2: a second START"},
      {annotate(""), "an annotation needs a text"},
  };
  for (const Broken& broken : cases) {
    for (const Mutation mutation : {Mutation::kCopies, Mutation::kInPlace}) {
      SCOPED_TRACE(broken.log);
      const std::string complaint = complaint_about(broken.log, mutation);
      EXPECT_NE(complaint.find(broken.says), std::string::npos) << "says: " << complaint;
      EXPECT_EQ(complaint.find("some.log"), 0U) << "says: " << complaint;
    }
  }
}

}  // namespace
}  // namespace coop::sim
