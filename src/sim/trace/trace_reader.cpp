#include <optional>
#include <vector>

#include "sim/trace/lines.hpp"
#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_builder.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

constexpr std::string_view kHeader = "coop-trace ";
constexpr std::string_view kVersion = "1";

// The words of a line, one blank between them.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line), is_done_(line.empty()) {}

  [[nodiscard]] bool is_done() const { return is_done_; }
  std::string_view next(const char* what) {
    if (is_done_) throw TraceError(std::string("the line has no ") + what);
    const std::size_t blank = rest_.find(' ');
    const std::string_view word = rest_.substr(0, blank);
    if (word.empty()) throw TraceError(std::string("a blank too many where ") + what + " belongs");
    is_done_ = blank == std::string_view::npos;
    rest_ = is_done_ ? std::string_view() : rest_.substr(blank + 1);
    return word;
  }
  // Everything that is left.
  std::string_view rest(const char* what) {
    if (rest_.empty()) throw TraceError(std::string("the line has no ") + what);
    is_done_ = true;
    return rest_;
  }
  void end() const {
    if (!is_done_) throw TraceError("more on the line than belongs there: " + shown(rest_));
  }

 private:
  std::string_view rest_;
  bool is_done_;
};

StorageNumber parse_storage(std::string_view word) {
  return StorageNumber{parse_whole<std::uint32_t>(word, "the storage")};
}
NameNumber parse_name(std::string_view word) {
  return NameNumber{parse_whole<std::uint32_t>(word, "the name")};
}

class Reader {
 public:
  void read(std::string_view line) {
    if (!has_header_) {
      read_header(line);
    } else if (has_end_) {
      throw TraceError("more lines after the end");
    } else if (line.empty()) {
      throw TraceError("an empty line");
    } else if (line[0] != '#') {
      read_instruction(line);
    }
  }

  Trace finish() {
    if (!has_header_) throw TraceError("the file is empty");
    if (!has_end_) throw TraceError("the file was cut off: it has no line 'end'");
    return builder_.finish();
  }

 private:
  void read_header(std::string_view line) {
    if (line.substr(0, kHeader.size()) != kHeader) {
      throw TraceError("not a trace: the first line is " + shown(line) + ", not 'coop-trace 1'");
    }
    const std::string_view version = line.substr(kHeader.size());
    if (version != kVersion) {
      throw TraceError("version " + shown(version) + " of the format is not known; this is 1");
    }
    has_header_ = true;
  }

  void read_instruction(std::string_view line) {
    Words words(line);
    const std::string_view instruction = words.next("instruction");
    if (instruction == "call") {
      read_call(words);
    } else if (instruction == "release") {
      builder_.release(parse_storage(words.next("storage")));
    } else if (instruction == "name") {
      read_name(words);
    } else if (instruction == "source") {
      read_source(words);
    } else if (instruction == "export") {
      builder_.export_pointer(parse_storage(words.next("storage")));
    } else if (instruction == "pin") {
      builder_.pin(parse_storage(words.next("storage")));
    } else if (instruction == "unpin") {
      builder_.unpin(parse_storage(words.next("storage")));
    } else if (instruction == "step") {
      builder_.begin_step();
    } else if (instruction == "annotate") {
      builder_.annotate(parse_name(words.next("name")));
    } else if (instruction == "end") {
      read_end(words);
    } else {
      throw TraceError("unknown instruction " + shown(instruction));
    }
    words.end();
  }

  void read_name(Words& words) {
    const NameNumber number = parse_name(words.next("number"));
    const NameNumber expected = builder_.next_name();
    if (number != expected) {
      throw TraceError("name " + std::to_string(index_of(number)) + " where the next one is " +
                       std::to_string(index_of(expected)));
    }
    const std::string_view text = words.rest("name");
    if (builder_.name(text) != expected) throw TraceError("duplicate name " + shown(text));
  }

  // Numbers are written out for the reader's sake; they must be the ones that come next.
  void expect_storage(StorageNumber number, std::size_t ahead) const {
    const std::size_t expected = index_of(builder_.next_storage()) + ahead;
    if (index_of(number) != expected) {
      throw TraceError("new storage " + std::to_string(index_of(number)) +
                       " where the next one is " + std::to_string(expected));
    }
  }

  void read_source(Words& words) {
    expect_storage(parse_storage(words.next("storage")), 0);
    const Bytes bytes = parse_whole(words.next("size"), "the size");
    const NameNumber name = words.is_done() ? kNoName : parse_name(words.next("name"));
    builder_.add_source(bytes, name);
  }

  void read_call(Words& words) {
    reads_.clear();
    writes_.clear();
    outputs_.clear();
    NewCall call;
    call.op = parse_name(words.next("operator"));
    call.module = parse_name(words.next("module"));
    call.cost_ns = parse_decimal(words.next("cost"), "the cost");
    List list = List::kNone;
    while (!words.is_done()) {
      const std::string_view word = words.next("word");
      const bool is_number = word[0] >= '0' && word[0] <= '9';
      if (is_number) {
        read_member(list, word);
      } else {
        list = read_keyword(word, words, call);
      }
    }
    call.reads = reads_;
    call.writes = writes_;
    call.outputs = outputs_;
    builder_.add_call(call);
  }

  // What a number in a call belongs to: the last of these words before it.
  enum class List : std::uint8_t { kNone, kReads, kChanges, kOverwrites, kMakes, kMakesSource };

  static List read_keyword(std::string_view word, Words& words, NewCall& call) {
    if (word == "reads") return List::kReads;
    if (word == "changes") return List::kChanges;
    if (word == "overwrites") return List::kOverwrites;
    if (word == "makes") return List::kMakes;
    if (word == "makes-source") return List::kMakesSource;
    if (word == "workspace") {
      if (call.workspace_bytes > 0) throw TraceError("two workspaces for one call");
      call.workspace_bytes = parse_whole(words.next("size"), "the workspace");
    } else if (word == "random") {
      call.is_random = true;
    } else if (word == "once") {
      call.is_replayable = false;
    } else {
      throw TraceError("unknown word in a call: " + shown(word));
    }
    return List::kNone;
  }

  void read_member(List list, std::string_view word) {
    switch (list) {
      case List::kReads:
        reads_.push_back(parse_storage(word));
        break;
      case List::kChanges:
      case List::kOverwrites:
        writes_.push_back({.storage = parse_storage(word), .reads_old = list == List::kChanges});
        break;
      case List::kMakes:
      case List::kMakesSource:
        read_output(word, list == List::kMakesSource);
        break;
      case List::kNone:
        throw TraceError("a number that belongs to nothing: " + shown(word));
    }
  }

  // storage:bytes, or storage:bytes:name
  void read_output(std::string_view word, bool is_source) {
    const std::size_t first = word.find(':');
    if (first == std::string_view::npos) throw TraceError("no size for output " + shown(word));
    const std::size_t second = word.find(':', first + 1);
    expect_storage(parse_storage(word.substr(0, first)), outputs_.size());
    NewStorage output{.is_source = is_source};
    output.bytes = parse_whole(word.substr(first + 1, second - first - 1), "the size");
    if (second != std::string_view::npos) output.name = parse_name(word.substr(second + 1));
    outputs_.push_back(output);
  }

  void read_end(Words& words) {
    const auto count = parse_whole(words.next("count"), "the count");
    if (count != builder_.event_count()) {
      throw TraceError("lines are missing: the file says that it has " + std::to_string(count) +
                       " events, and " + std::to_string(builder_.event_count()) + " are there");
    }
    has_end_ = true;
  }

  TraceBuilder builder_;
  bool has_header_ = false;
  bool has_end_ = false;
  // Of the call that is being read.
  std::vector<StorageNumber> reads_;
  std::vector<TraceWrite> writes_;
  std::vector<NewStorage> outputs_;
};

}  // namespace

Trace parse_trace(std::string_view text, const std::string& file) {
  Reader reader;
  for_each_line(text, file, [&](std::string_view line) { reader.read(line); });
  try {
    return reader.finish();
  } catch (const TraceError& error) {
    throw TraceError(file + ": " + error.what());
  }
}

Trace read_trace(const std::filesystem::path& path) {
  return parse_trace(read_text_file(path), path.string());
}

}  // namespace coop::sim
