#include <array>
#include <charconv>

#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {}

  std::string write() {
    text_ = "coop-trace " + std::to_string(trace_.version()) + "\n";
    write_recorded_with();
    for (const TraceEvent& event : trace_.events()) write_event(event);
    write_names_up_to(trace_.name_count() - 1);
    text_ += "end";
    number(trace_.events().size());
    text_ += '\n';
    return std::move(text_);
  }

 private:
  void write_event(const TraceEvent& event) {
    switch (event.kind) {
      case EventKind::kCall:
        return write_call(trace_.call(event.call()));
      case EventKind::kSource:
        return write_source(event.storage(), "source");
      case EventKind::kRelease:
        return write_line("release", event.subject);
      case EventKind::kExport:
        return write_line("export", event.subject);
      case EventKind::kPin:
        return write_line("pin", event.subject);
      case EventKind::kUnpin:
        return write_line("unpin", event.subject);
      case EventKind::kStep:
        text_ += "step\n";
        return;
      case EventKind::kAnnotate:
        write_names_up_to(event.subject);
        return write_line("annotate", event.subject);
      case EventKind::kForeign:
        return write_source(event.storage(), "foreign");
      case EventKind::kBlock:
        return write_block(event.block());
      case EventKind::kFree:
        return write_line("free", event.subject);
      case EventKind::kAdopt:
        return write_source(event.storage(), "adopt");
      case EventKind::kBegin:
        return write_begin(event.run());
      case EventKind::kRoom:
        return write_room(event.block());
      case EventKind::kFinish:
        return write_call(trace_.call(event.call()));
      case EventKind::kAbort:
        return write_line("abort", event.subject);
      case EventKind::kKeep:
        return write_line("keep", event.subject);
      case EventKind::kSettle:
        return write_line("settle", event.subject);
      case EventKind::kBring:
        return write_line("bring", event.subject);
      case EventKind::kEvictAll:
        text_ += "evict-all\n";
        return;
      case EventKind::kCompact:
        text_ += "compact\n";
        return;
      case EventKind::kFails:
        text_ += "fails\n";
        return;
      case EventKind::kEvicted:
        if (event.storage() != kNoStorage) return write_line("evicted", event.subject);
        text_ += "evicted past\n";
        return;
      case EventKind::kAgain:
        return write_line("again", event.subject);
    }
  }

  void write_recorded_with() {
    const auto& with = trace_.recorded_with();
    if (!with) return;
    write_names_up_to(index_of(with->policy));
    text_ += "recorded";
    number(with->budget);
    number(with->small_limit);
    number(with->most_slowdown);
    number(index_of(with->policy));
    if (with->has_decisions) text_ += " decisions";
    if (with->is_late) text_ += " late";
    text_ += '\n';
  }

  // Names are written before they are first used, in the order of their numbers.
  void write_names_up_to(std::size_t last) {
    for (; names_written_ <= last; ++names_written_) {
      text_ += "name";
      number(names_written_);
      text_ += ' ';
      text_ += trace_.name(NameNumber{static_cast<std::uint32_t>(names_written_)});
      text_ += '\n';
    }
  }

  void write_line(const char* instruction, std::uint32_t subject) {
    text_ += instruction;
    number(subject);
    text_ += '\n';
  }

  void write_source(StorageNumber storage, const char* instruction) {
    const NameNumber name = trace_.storage(storage).name;
    const BlockNumber block = trace_.storage(storage).block;
    write_names_up_to(index_of(name));
    text_ += instruction;
    number(index_of(storage));
    number(trace_.storage(storage).bytes);
    if (block != kNoBlock) number(index_of(block));
    if (name != kNoName) number(index_of(name));
    text_ += '\n';
  }

  void write_room(BlockNumber block) {
    text_ += "room";
    number(index_of(block));
    number(trace_.block(block).bytes);
    number(index_of(trace_.block(block).room_for));
    text_ += '\n';
  }

  void write_block(BlockNumber block) {
    text_ += "block";
    number(index_of(block));
    number(trace_.block(block).bytes);
    number(trace_.block(block).cost_ns);
    if (trace_.block(block).lives_long) text_ += " stays";
    text_ += '\n';
  }

  void write_begin(RunNumber number_of_run) {
    const TraceRun run = trace_.run(number_of_run);
    text_ += "begin";
    number(index_of(number_of_run));
    write_uses(run.reads, run.writes);
    text_ += '\n';
  }

  void write_call(const TraceCall& call) {
    write_names_up_to(index_of(call.op));
    write_names_up_to(index_of(call.module));
    for (std::uint32_t i = 0; i < call.outputs; ++i) {
      write_names_up_to(index_of(trace_.storage(call.output(i)).name));
    }
    const bool is_run = call.run != kNoRun;
    text_ += is_run ? "finish" : "call";
    if (is_run) number(index_of(call.run));
    number(index_of(call.op));
    number(index_of(call.module));
    number(call.cost_ns);
    if (!is_run) write_uses(call.reads, call.writes);
    write_outputs(call);
    write_memory(call);
    if (call.is_random) text_ += " random";
    if (!call.is_replayable) text_ += " once";
    text_ += '\n';
  }

  void write_uses(std::span<const StorageNumber> reads, std::span<const TraceWrite> writes) {
    if (!reads.empty()) text_ += " reads";
    for (const StorageNumber storage : reads) number(index_of(storage));
    write_writes(writes);
  }

  void write_writes(std::span<const TraceWrite> writes) {
    const TraceWrite* before = nullptr;
    for (const TraceWrite& write : writes) {
      if (before == nullptr || before->reads_old != write.reads_old) {
        text_ += write.reads_old ? " changes" : " overwrites";
      }
      number(index_of(write.storage));
      before = &write;
    }
  }

  void write_outputs(const TraceCall& call) {
    const TraceStorage* before = nullptr;
    for (std::uint32_t i = 0; i < call.outputs; ++i) {
      const TraceStorage& output = trace_.storage(call.output(i));
      if (before == nullptr || before->is_source != output.is_source) {
        text_ += output.is_source ? " makes-source" : " makes";
      }
      number(index_of(call.output(i)));
      number(output.bytes, ':');
      if (output.name != kNoName) number(index_of(output.name), ':');
      if (output.block != kNoBlock) number(index_of(output.block), '@');
      before = &output;
    }
  }

  void write_memory(const TraceCall& call) {
    if (call.memory.empty()) {
      if (call.workspace_bytes > 0) text_ += " workspace";
      if (call.workspace_bytes > 0) number(call.workspace_bytes);
      return;
    }
    if (call.expected_ns != 0) text_ += " expects";
    if (call.expected_ns != 0) number(call.expected_ns);
    text_ += " memory";
    for (const MemoryStep& step : call.memory) {
      text_ += ' ';
      switch (step.kind) {
        case MemoryStep::Kind::kOutput:
          number(step.value, '=');
          break;
        case MemoryStep::Kind::kTake:
          number(step.value, '+');
          break;
        case MemoryStep::Kind::kGive:
          number(step.value, '-');
          break;
      }
    }
  }

  // Of a cost the shortest text that reads back as the same number.
  template <typename Number>
  void number(Number value, char separator = ' ') {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text_ += separator;
    text_.append(digits.data(), end);
  }

  const Trace& trace_;
  std::string text_;
  std::size_t names_written_ = 1;  // the empty name needs no line
};

}  // namespace

std::string format_trace(const Trace& trace) { return Writer(trace).write(); }

}  // namespace coop::sim
