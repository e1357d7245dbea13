#include "plugin/last_out_of_memory.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <utility>

#include "plugin/pace.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

std::mutex mutex;
std::optional<LastOutOfMemory>& last() {
  static auto& it = *new std::optional<LastOutOfMemory>;
  return it;
}

LastOutOfMemory facts_of(const MemoryReport& report) {
  LastOutOfMemory facts{.report = report, .budget = report.pool};
  if (this_thread.running != nullptr) facts.op = toString(this_thread.running->operator_name());
  if (const Session* session = Session::active()) {
    facts.device = session->options().device.type();
    facts.budget = session->options().budget;
    const Session::Lasting lasting = session->lasting();
    facts.parameters = lasting.parameters;
    facts.gradients = lasting.gradients;
  }
  if (report.smallest_budget != 0) {
    facts.enough_budget = facts.budget + (report.smallest_budget - report.pool);
  }
  return facts;
}

std::string held_text(const LastOutOfMemory& facts) {
  const MemoryReport& report = facts.report;
  std::string text = format_bytes(report.free) + " free";
  for (std::size_t i = 0; i < kHolders; ++i) {
    const Holding& held = report.held[i];
    if (held.blocks == 0) continue;
    text += ", " + format_bytes(held.bytes) + " in " + std::to_string(held.blocks) +
            (held.blocks == 1 ? " block " : " blocks ") +
            std::string(describe(static_cast<Holder>(i)));
  }
  if (facts.budget > report.pool) {
    text += ", " + format_bytes(facts.budget - report.pool) + " in use before it began";
  }
  return text;
}

// Where all that could be evicted is, and it would not be enough.
std::string lasting_text(const LastOutOfMemory& facts) {
  const MemoryReport& report = facts.report;
  if (report.lasting + report.requested <= report.pool) return "";
  const Bytes known = std::min(facts.parameters + facts.gradients, report.lasting);
  return "No eviction can help: parameters (" + format_bytes(facts.parameters) + "), gradients (" +
         format_bytes(facts.gradients) +
         ") and what else cannot be recomputed, like optimizer state and inputs (" +
         format_bytes(report.lasting - known) + "), need " +
         format_bytes(report.lasting + report.requested) +
         " alone with this request, more than the budget. ";
}

std::string advice_for(const LastOutOfMemory& facts, const std::string& why) {
  const MemoryReport& report = facts.report;
  std::string text = "coop: out of memory: ";
  text += facts.op.empty() ? "a request for " : facts.op + " asked for ";
  text += format_bytes(report.requested);
  if (report.largest_room < report.requested) {
    text += ", and at most " + format_bytes(report.largest_room) + " can be made free in one piece";
  }
  text += ". " + (why.empty() ? "" : why + " ") + lasting_text(facts) + "The budget of " +
          format_bytes(facts.budget) + " has " + held_text(facts) + ". What would help: ";
  if (facts.enough_budget > facts.budget) {
    // Rounded up, so that what is advised is enough.
    constexpr Bytes kMiB = Bytes{1} << 20U;
    const Bytes enough = (facts.enough_budget + kMiB - 1) / kMiB;
    text += "coop.budget(\"" + std::to_string(enough) + "MiB\"), which would serve this request; ";
  } else {
    text += "a larger budget; ";
  }
  text +=
      "a smaller batch; dropping tensors that cannot be recomputed. coop.last_oom() has these "
      "facts.";
  return in_words_of_pytorch(facts.device, text);
}

void note(LastOutOfMemory facts) {
  const std::scoped_lock lock(mutex);
  last() = std::move(facts);
}

// "3.1" and "1.25", and not "3.100000".
std::string as_text(double number) {
  std::ostringstream text;
  text << std::setprecision(6) << number;
  return text.str();
}

}  // namespace

std::string in_words_of_pytorch(c10::DeviceType device, const std::string& text) {
  if (device == c10::kCUDA) return "CUDA out of memory. " + text;
  return text + " (DefaultCPUAllocator: can't allocate memory.)";
}

std::optional<LastOutOfMemory> last_out_of_memory() {
  const std::scoped_lock lock(mutex);
  return last();
}

void raise_out_of_memory(const OutOfMemory& error) {
  // Of what the engine sees to itself the program is not told.
  TORCH_CHECK_WITH(OutOfMemoryError, !this_thread.is_replaying, error.what());
  if (this_thread.no_room != nullptr) {
    *this_thread.no_room = error.report();
    TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
  }
  LastOutOfMemory facts = facts_of(error.report());
  const std::string text = advice_for(facts, error.why());
  note(std::move(facts));
  TORCH_CHECK_WITH(OutOfMemoryError, false, text);
}

void raise_too_slow(const Loss& loss, double max_slowdown, const MemoryReport& report) {
  LastOutOfMemory facts = facts_of(report);
  facts.enough_budget = facts.budget + loss.more_to_halve;
  const std::string text =
      "coop: out of memory: with a budget of " + format_bytes(facts.budget) + " the program is " +
      as_text(std::round(10 * loss.slowdown()) / 10) +
      " times slower than without, for what is recomputed; max_slowdown=" + as_text(max_slowdown) +
      " was asked for. About " + format_bytes(facts.enough_budget) +
      " would halve what is lost; so would a smaller batch.";
  const c10::DeviceType device = facts.device;
  note(std::move(facts));
  TORCH_CHECK_WITH(OutOfMemoryError, false, in_words_of_pytorch(device, text));
}

}  // namespace coop::plugin
