#pragma once

// The words of a call: what it reads, writes and makes, and its memory.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/lines.hpp"
#include "sim/trace/trace_builder.hpp"
#include "sim/trace/words.hpp"

namespace coop::sim {

inline StorageNumber parse_storage(std::string_view word) {
  return StorageNumber{parse_whole<std::uint32_t>(word, "the storage")};
}
inline NameNumber parse_name(std::string_view word) {
  return NameNumber{parse_whole<std::uint32_t>(word, "the name")};
}
inline BlockNumber parse_block(std::string_view word) {
  return BlockNumber{parse_whole<std::uint32_t>(word, "the block")};
}
inline RunNumber parse_run(std::string_view word) {
  return RunNumber{parse_whole<std::uint32_t>(word, "the run")};
}

// Numbers are written out for the reader's sake; they must be the ones that come next.
inline void expect_storage(const TraceBuilder& builder, StorageNumber number, std::size_t ahead) {
  const std::size_t expected = index_of(builder.next_storage()) + ahead;
  if (index_of(number) != expected) {
    throw TraceError("new storage " + std::to_string(index_of(number)) + " where the next one is " +
                     std::to_string(expected));
  }
}

class CallReader {
 public:
  explicit CallReader(const TraceBuilder& builder) : builder_(builder) {}
  void allow_version_2() { is_version_2_ = true; }

  // Its operator, module and cost.
  static NewCall read_who(Words& words) {
    NewCall call;
    call.op = parse_name(words.next("operator"));
    call.module = parse_name(words.next("module"));
    call.cost_ns = parse_decimal(words.next("cost"), "the cost");
    return call;
  }

  // The rest. What it returns looks into us, until the next one.
  NewCall read_uses(Words& words, NewCall call) {
    reads_.clear();
    writes_.clear();
    outputs_.clear();
    memory_.clear();
    is_run_only_ = false;
    List list = List::kNone;
    while (!words.is_done()) {
      const std::string_view word = words.next("word");
      const bool is_number = word[0] >= '0' && word[0] <= '9';
      if (is_number) {
        read_member(list, word);
      } else if (list == List::kMemory && (word[0] == '=' || word[0] == '+' || word[0] == '-')) {
        read_memory(word);
      } else {
        list = read_keyword(word, words, call);
      }
    }
    call.reads = reads_;
    call.writes = writes_;
    call.outputs = outputs_;
    call.memory = memory_;
    return call;
  }

  // It has a word that only runs have.
  [[nodiscard]] bool is_of_run() const { return is_run_only_; }

 private:
  // What a number in a call belongs to: the last of these words before it.
  enum class List : std::uint8_t {
    kNone,
    kReads,
    kChanges,
    kOverwrites,
    kMakes,
    kMakesSource,
    kMemory
  };

  List read_keyword(std::string_view word, Words& words, NewCall& call) {
    if (word == "reads") return List::kReads;
    if (word == "changes") return List::kChanges;
    if (word == "overwrites") return List::kOverwrites;
    if (word == "makes") return List::kMakes;
    if (word == "makes-source") return List::kMakesSource;
    if (word == "memory" && is_version_2_) return List::kMemory;
    if (word == "expects" && is_version_2_) {
      call.expected_ns = parse_decimal(words.next("cost"), "the cost");
    } else if (word == "workspace") {
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
      case List::kMemory:
      case List::kNone:
        throw TraceError("a number that belongs to nothing: " + shown(word));
    }
  }

  // =output, +bytes, or -number
  void read_memory(std::string_view word) {
    const auto kind = word[0] == '='   ? MemoryStep::Kind::kOutput
                      : word[0] == '+' ? MemoryStep::Kind::kTake
                                       : MemoryStep::Kind::kGive;
    memory_.push_back({.kind = kind, .value = parse_whole(word.substr(1), "the memory")});
  }

  // storage:bytes, or storage:bytes:name; of a run with @block behind it
  void read_output(std::string_view word, bool is_source) {
    NewStorage output{.is_source = is_source};
    if (const std::size_t at = word.find('@'); is_version_2_ && at != std::string_view::npos) {
      output.block = parse_block(word.substr(at + 1));
      is_run_only_ = true;
      word = word.substr(0, at);
    }
    const std::size_t first = word.find(':');
    if (first == std::string_view::npos) throw TraceError("no size for output " + shown(word));
    const std::size_t second = word.find(':', first + 1);
    expect_storage(builder_, parse_storage(word.substr(0, first)), outputs_.size());
    output.bytes = parse_whole(word.substr(first + 1, second - first - 1), "the size");
    if (second != std::string_view::npos) output.name = parse_name(word.substr(second + 1));
    outputs_.push_back(output);
  }

  const TraceBuilder& builder_;
  bool is_version_2_ = false;
  bool is_run_only_ = false;
  std::vector<StorageNumber> reads_;
  std::vector<TraceWrite> writes_;
  std::vector<NewStorage> outputs_;
  std::vector<MemoryStep> memory_;
};

}  // namespace coop::sim
