#include <array>
#include <charconv>

#include "sim/trace/text_file.hpp"
#include "sim/trace/trace_file.hpp"

namespace coop::sim {
namespace {

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {}

  std::string write() {
    text_ = "coop-trace 1\n";
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
        return write_source(event.storage());
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
    }
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

  void write_source(StorageNumber storage) {
    const NameNumber name = trace_.storage(storage).name;
    write_names_up_to(index_of(name));
    text_ += "source";
    number(index_of(storage));
    number(trace_.storage(storage).bytes);
    if (name != kNoName) number(index_of(name));
    text_ += '\n';
  }

  void write_call(const TraceCall& call) {
    write_names_up_to(index_of(call.op));
    write_names_up_to(index_of(call.module));
    for (std::uint32_t i = 0; i < call.outputs; ++i) {
      write_names_up_to(index_of(trace_.storage(call.output(i)).name));
    }
    text_ += "call";
    number(index_of(call.op));
    number(index_of(call.module));
    number(call.cost_ns);
    if (!call.reads.empty()) text_ += " reads";
    for (const StorageNumber storage : call.reads) number(index_of(storage));
    write_writes(call);
    write_outputs(call);
    if (call.workspace_bytes > 0) {
      text_ += " workspace";
      number(call.workspace_bytes);
    }
    if (call.is_random) text_ += " random";
    if (!call.is_replayable) text_ += " once";
    text_ += '\n';
  }

  void write_writes(const TraceCall& call) {
    const TraceWrite* before = nullptr;
    for (const TraceWrite& write : call.writes) {
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
      before = &output;
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

void write_trace(const Trace& trace, const std::filesystem::path& path) {
  write_text_file(path, format_trace(trace));
}

}  // namespace coop::sim
