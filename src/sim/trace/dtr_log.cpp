#include "sim/trace/dtr_log.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/trace/dtr_instruction.hpp"
#include "sim/trace/dtr_names.hpp"
#include "sim/trace/lines.hpp"
#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_builder.hpp"

namespace coop::sim {
namespace {

// The program that the log tells of.
class Program {
 public:
  explicit Program(Mutation mutation) : mutation_(mutation) {}

  void read(const DtrInstruction& line) {
    const std::string_view kind = line.text("INSTRUCTION");
    if (has_pending()) {
      read_pending(kind, line);
    } else if (kind == "CALL") {
      begin_call(line);
    } else if (kind == "MUTATE") {
      mutate(line);
    } else if (kind == "CONSTANT") {
      constant_ = line.text("NAME");
      names_.expect_new(constant_);
      if (constant_.empty()) throw TraceError("a constant without a name");
    } else if (kind == "RELEASE") {
      release(names_.forget(line.text("NAME")));
    } else if (kind == "COPY") {
      names_.bind(line.text("DST"), names_.find(line.text("SRC")));
    } else if (kind == "COPY_FROM") {
      release(names_.rebind(line.text("DST"), names_.find(line.text("SRC"))));
    } else if (kind == "ANNOTATE") {
      builder_.annotate(builder_.name(line.text("ANNOTATION")));
    } else if (kind == "MEMORY" || kind == "ALIAS") {
      throw TraceError(std::string(kind) + " belongs behind a CONSTANT or a CALL");
    } else {
      throw TraceError("unknown instruction " + shown(kind));
    }
  }

  Trace finish() {
    if (has_pending()) throw TraceError("the log was cut off: MEMORY or ALIAS is missing");
    return builder_.finish();
  }

 private:
  // A CONSTANT or CALL is complete only with the lines behind it.
  [[nodiscard]] bool has_pending() const { return !constant_.empty() || !results_.empty(); }

  void read_pending(std::string_view kind, const DtrInstruction& line) {
    const bool wants_alias = constant_.empty() && results_[known_results_].has_memory;
    const char* wanted = wants_alias ? "ALIAS" : "MEMORY";
    if (kind != wanted) {
      throw TraceError(std::string(wanted) + " is missing before " + shown(kind));
    }
    const std::string& name = constant_.empty() ? results_[known_results_].name : constant_;
    if (line.text("NAME") != name) {
      throw TraceError(std::string(wanted) + " of " + shown(line.text("NAME")) + " where that of " +
                       shown(name) + " belongs");
    }
    if (!constant_.empty()) {
      // The log's names are numbers with a letter before them; they would only take room.
      names_.bind(std::exchange(constant_, {}), builder_.add_source(line.memory()));
    } else if (wants_alias) {
      read_alias(line.text("ALIAS"));
    } else {
      results_[known_results_].bytes = line.memory();
      results_[known_results_].has_memory = true;
    }
  }

  void begin_call(const DtrInstruction& line) {
    op_ = line.text("NAME");
    cost_ns_ = line.time();
    args_.clear();
    for (const std::string_view name : line.texts("ARGS")) args_.push_back(names_.find(name));
    for (const std::string_view name : line.texts("RESULT")) {
      names_.expect_new(name);
      results_.push_back({.name = std::string(name)});
    }
    if (results_.empty()) end_call();
  }

  void read_alias(std::string_view text) {
    Result& result = results_[known_results_];
    if (text != "-1") {
      const auto argument = parse_whole(text, "ALIAS");
      if (argument >= args_.size()) {
        throw TraceError("ALIAS " + shown(text) + " where the call has " +
                         std::to_string(args_.size()) + " arguments");
      }
      result.alias = static_cast<std::int64_t>(argument);
    }
    if (++known_results_ == results_.size()) end_call();
  }

  void end_call() {
    std::vector<NewStorage> outputs;
    for (const Result& result : results_) {
      if (!result.is_alias()) outputs.push_back({.bytes = result.bytes});
    }
    StorageNumber next = builder_.add_call(
        {.op = operator_name(op_), .cost_ns = cost_ns_, .reads = args_, .outputs = outputs});
    for (const Result& result : results_) {
      if (result.is_alias()) {
        names_.bind(result.name, args_[static_cast<std::size_t>(result.alias)]);
      } else {
        names_.bind(result.name, next);
        next = StorageNumber{index_of(next) + 1};
      }
    }
    results_.clear();
    known_results_ = 0;
  }

  void mutate(const DtrInstruction& line) {
    const std::vector<std::string_view> names = line.texts("ARGS");
    args_.clear();
    for (const std::string_view name : names) args_.push_back(names_.find(name));
    std::vector<std::size_t> mutated;
    for (const simdjson::dom::element item : line.list("MUTATE")) {
      std::uint64_t argument = 0;
      if (item.get(argument) != simdjson::SUCCESS || argument >= args_.size()) {
        throw TraceError("MUTATE must be a list of numbers of arguments");
      }
      mutated.push_back(argument);
    }
    const NewCall call{.op = operator_name(line.text("NAME")), .cost_ns = line.time()};
    if (mutation_ == Mutation::kInPlace) {
      mutate_in_place(call, mutated);
    } else {
      mutate_copies(call, names, mutated);
    }
  }

  void mutate_in_place(NewCall call, const std::vector<std::size_t>& mutated) {
    std::vector<TraceWrite> writes;
    for (const std::size_t argument : mutated) {
      // Two arguments may be views of one storage.
      const TraceWrite write{.storage = args_[argument]};
      if (std::find(writes.begin(), writes.end(), write) == writes.end()) writes.push_back(write);
    }
    // Whoever changes a storage reads it anyway.
    std::erase_if(args_, [&](StorageNumber storage) {
      return std::find(writes.begin(), writes.end(), TraceWrite{.storage = storage}) !=
             writes.end();
    });
    call.reads = args_;
    call.writes = writes;
    builder_.add_call(call);
  }

  void mutate_copies(NewCall call, const std::vector<std::string_view>& names,
                     const std::vector<std::size_t>& mutated) {
    std::vector<NewStorage> outputs;
    for (const std::size_t argument : mutated) {
      outputs.push_back({.bytes = builder_.bytes_of(args_[argument])});
    }
    call.reads = args_;
    call.outputs = outputs;
    StorageNumber next = builder_.add_call(call);
    for (const std::size_t argument : mutated) {
      const std::string_view name = names[argument];
      release(names_.forget(name));
      names_.bind(name, next);
      next = StorageNumber{index_of(next) + 1};
    }
  }

  void release(std::optional<StorageNumber> nameless) {
    if (nameless) builder_.release(*nameless);
  }

  NameNumber operator_name(std::string_view name) {
    if (name.empty()) throw TraceError("an operator without a name");
    return builder_.name(name);
  }

  struct Result {
    std::string name;
    Bytes bytes = 0;
    std::int64_t alias = -1;  // which argument it shares the storage of
    bool has_memory = false;
    [[nodiscard]] bool is_alias() const { return alias >= 0; }
  };

  Mutation mutation_;
  TraceBuilder builder_;
  DtrNames names_;
  // What the lines to come belong to.
  std::string constant_;
  std::string op_;
  double cost_ns_ = 0;
  std::vector<StorageNumber> args_;
  std::vector<Result> results_;
  std::size_t known_results_ = 0;
};

// Whatever comes before START does not count.
class Reader {
 public:
  explicit Reader(Mutation mutation) : mutation_(mutation), program_(mutation) {}

  void read(std::string_view line) {
    const DtrInstruction instruction = parser_.parse(line);
    if (is_start(instruction)) {
      if (std::exchange(has_started_, true)) throw TraceError("a second START");
      program_ = Program(mutation_);
    } else {
      program_.read(instruction);
    }
    is_empty_ = false;
  }

  Trace finish() {
    if (is_empty_) throw TraceError("the file is empty");
    return program_.finish();
  }

 private:
  static bool is_start(const DtrInstruction& line) {
    return line.text("INSTRUCTION") == "ANNOTATE" && line.text("ANNOTATION") == "START";
  }

  Mutation mutation_;
  Program program_;
  DtrInstructionParser parser_;
  bool has_started_ = false;
  bool is_empty_ = true;
};

}  // namespace

Trace parse_dtr_log(std::string text, const std::string& file, Mutation mutation) {
  const std::size_t size = text.size();
  text.append(simdjson::SIMDJSON_PADDING, ' ');
  Reader reader(mutation);
  for_each_line(std::string_view(text).substr(0, size), file,
                [&](std::string_view line) { reader.read(line); });
  try {
    return reader.finish();
  } catch (const TraceError& error) {
    throw TraceError(file + ": " + error.what());
  }
}

Trace read_dtr_log(const std::filesystem::path& path, Mutation mutation) {
  return parse_dtr_log(read_text_file(path), path.string(), mutation);
}

}  // namespace coop::sim
