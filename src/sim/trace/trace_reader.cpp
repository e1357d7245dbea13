#include <algorithm>
#include <array>

#include "sim/trace/call_reader.hpp"
#include "sim/trace/lines.hpp"
#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_builder.hpp"
#include "sim/trace/trace_file.hpp"
#include "sim/trace/words.hpp"

namespace coop::sim {
namespace {

constexpr std::string_view kHeader = "coop-trace ";

class TraceReader {
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
    const std::string_view version = line.substr(kHeader.size());
    if (version != "1" && version != "2") {
      throw TraceError("version " + shown(version) +
                       " of the format is not known; there are 1 and 2");
    }
    is_version_2_ = version == "2";
    if (is_version_2_) calls_.allow_version_2();
    has_header_ = true;
  }

  struct Instruction {
    std::string_view word;
    bool is_of_version_2;
    void (TraceReader::*read)(Words&);
  };
  static constexpr auto kOf1 = false;
  static constexpr auto kOf2 = true;

  void read_instruction(std::string_view line) {
    static constexpr std::array<Instruction, 26> kInstructions{{
        {"call", kOf1, &TraceReader::read_call},
        {"release", kOf1, &TraceReader::read_about<&TraceBuilder::release>},
        {"name", kOf1, &TraceReader::read_name},
        {"source", kOf1, &TraceReader::read_source},
        {"export", kOf1, &TraceReader::read_about<&TraceBuilder::export_pointer>},
        {"pin", kOf1, &TraceReader::read_about<&TraceBuilder::pin>},
        {"unpin", kOf1, &TraceReader::read_about<&TraceBuilder::unpin>},
        {"step", kOf1, &TraceReader::read_step},
        {"annotate", kOf1, &TraceReader::read_annotation},
        {"end", kOf1, &TraceReader::read_end},
        {"evicted", kOf2, &TraceReader::read_evicted},
        {"again", kOf2, &TraceReader::read_again},
        {"block", kOf2, &TraceReader::read_block},
        {"free", kOf2, &TraceReader::read_free},
        {"settle", kOf2, &TraceReader::read_about<&TraceBuilder::settle>},
        {"begin", kOf2, &TraceReader::read_begin},
        {"room", kOf2, &TraceReader::read_room},
        {"finish", kOf2, &TraceReader::read_finish},
        {"abort", kOf2, &TraceReader::read_abort},
        {"foreign", kOf2, &TraceReader::read_foreign},
        {"adopt", kOf2, &TraceReader::read_adopt},
        {"keep", kOf2, &TraceReader::read_about<&TraceBuilder::keep>},
        {"bring", kOf2, &TraceReader::read_about<&TraceBuilder::bring>},
        {"evict-all", kOf2, &TraceReader::read_note<EventKind::kEvictAll>},
        {"compact", kOf2, &TraceReader::read_note<EventKind::kCompact>},
        {"fails", kOf2, &TraceReader::read_note<EventKind::kFails>},
    }};
    Words words(line);
    const std::string_view word = words.next("instruction");
    if (word == "recorded" && is_version_2_) {
      read_recorded(words);
      return words.end();
    }
    const auto* const found =
        std::find_if(kInstructions.begin(), kInstructions.end(), [&](const Instruction& it) {
          return it.word == word && (is_version_2_ || !it.is_of_version_2);
        });
    if (found == kInstructions.end()) throw TraceError("unknown instruction " + shown(word));
    (this->*found->read)(words);
    words.end();
  }

  template <void (TraceBuilder::*About)(StorageNumber)>
  void read_about(Words& words) {
    (builder_.*About)(parse_storage(words.next("storage")));
  }
  template <EventKind Kind>
  void read_note(Words& /*words*/) {
    builder_.note(Kind);
  }
  void read_step(Words& /*words*/) { builder_.begin_step(); }
  void read_annotation(Words& words) { builder_.annotate(parse_name(words.next("name"))); }
  void read_free(Words& words) { builder_.free(parse_block(words.next("block"))); }
  void read_abort(Words& words) { builder_.abort(parse_run(words.next("run"))); }
  void read_again(Words& words) {
    builder_.ran_again(CallNumber{parse_whole<std::uint32_t>(words.next("call"), "the call")});
  }
  void read_evicted(Words& words) {
    const std::string_view word = words.next("storage");
    builder_.evicted(word == "past" ? kNoStorage : parse_storage(word));
  }
  void read_recorded(Words& words) {
    RecordedWith with;
    with.budget = parse_whole(words.next("budget"), "the budget");
    with.small_limit = parse_whole(words.next("limit"), "the limit");
    with.most_slowdown = parse_decimal(words.next("slowdown"), "the slowdown");
    with.policy = parse_name(words.next("policy"));
    while (!words.is_done()) {
      const std::string_view word = words.next("word");
      const bool is_known = word == "decisions" || word == "late";
      if (!is_known) throw TraceError("unknown word in a recording: " + shown(word));
      (word == "late" ? with.is_late : with.has_decisions) = true;
    }
    builder_.set_recorded_with(with);
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

  void read_source(Words& words) {
    expect_storage(builder_, parse_storage(words.next("storage")), 0);
    const Bytes bytes = parse_whole(words.next("size"), "the size");
    const NameNumber name = words.is_done() ? kNoName : parse_name(words.next("name"));
    builder_.add_source(bytes, name);
  }
  void read_foreign(Words& words) {
    expect_storage(builder_, parse_storage(words.next("storage")), 0);
    const Bytes bytes = parse_whole(words.next("size"), "the size");
    const NameNumber name = words.is_done() ? kNoName : parse_name(words.next("name"));
    builder_.add_foreign(bytes, name);
  }
  void read_adopt(Words& words) {
    expect_storage(builder_, parse_storage(words.next("storage")), 0);
    const Bytes bytes = parse_whole(words.next("size"), "the size");
    const BlockNumber block = parse_block(words.next("block"));
    const NameNumber name = words.is_done() ? kNoName : parse_name(words.next("name"));
    builder_.adopt(bytes, block, name);
  }
  void expect_new_block(Words& words) {
    const BlockNumber block = parse_block(words.next("block"));
    if (block == builder_.next_block()) return;
    throw TraceError("new block " + std::to_string(index_of(block)) + " where the next one is " +
                     std::to_string(index_of(builder_.next_block())));
  }
  void read_room(Words& words) {
    expect_new_block(words);
    const Bytes bytes = parse_whole(words.next("size"), "the size");
    builder_.room(parse_run(words.next("run")), bytes);
  }
  void read_block(Words& words) {
    expect_new_block(words);
    const Bytes bytes = parse_whole(words.next("size"), "the size");
    const double cost = parse_decimal(words.next("cost"), "the cost");
    const bool lives_long = !words.is_done();
    if (lives_long) {
      const std::string_view word = words.next("word");
      if (word != "stays") throw TraceError("unknown word about a block: " + shown(word));
    }
    builder_.add_block(bytes, cost, lives_long);
  }

  void read_call(Words& words) {
    const NewCall call = calls_.read_uses(words, CallReader::read_who(words));
    if (calls_.is_of_run()) throw TraceError("a storage in a block, and not of a run");
    builder_.add_call(call);
  }
  void read_begin(Words& words) {
    const RunNumber run = parse_run(words.next("run"));
    if (run != builder_.next_run()) {
      throw TraceError("new run " + std::to_string(index_of(run)) + " where the next one is " +
                       std::to_string(index_of(builder_.next_run())));
    }
    const NewCall call = calls_.read_uses(words, {});
    const bool has_more = !call.outputs.empty() || !call.memory.empty() ||
                          call.workspace_bytes > 0 || call.expected_ns != 0 || call.is_random ||
                          !call.is_replayable;
    if (has_more) throw TraceError("more than what it reads and writes, where a run begins");
    builder_.begin(call.reads, call.writes);
  }
  void read_finish(Words& words) {
    const RunNumber run = parse_run(words.next("run"));
    const NewCall call = calls_.read_uses(words, CallReader::read_who(words));
    const bool has_uses = !call.reads.empty() || !call.writes.empty();
    if (has_uses) throw TraceError("what it reads and writes, where a run ends");
    if (call.workspace_bytes > 0 || call.expected_ns != 0) {
      throw TraceError("a workspace or an expected cost, where a run ends");
    }
    builder_.finish_run(run, call);
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
  bool is_version_2_ = false;
  CallReader calls_{builder_};
};

}  // namespace

Trace parse_trace(std::string_view text, const std::string& file) {
  if (!text.empty() && !text.starts_with(kHeader)) {  // nor need it have lines
    throw TraceError(file + ":1: not a trace: the first line is " +
                     shown(text.substr(0, text.find('\n'))) +
                     ", not 'coop-trace 1' or 'coop-trace 2'");
  }
  TraceReader reader;
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

void write_trace(const Trace& trace, const std::filesystem::path& path) {
  write_text_file(path, format_trace(trace));
}

}  // namespace coop::sim
