#include "plugin/last_out_of_memory.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "plugin/budget_size.hpp"
#include "plugin/device.hpp"
#include "plugin/pace.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

constexpr std::size_t kAmountWidth = 12;  // "1015.3 MiB", and a margin

std::mutex mutex;
// Of each device, the last; the very last comes last.
std::vector<LastOutOfMemory>& all() {
  static auto& them = *new std::vector<LastOutOfMemory>;
  return them;
}

// Null if it is over.
const Session* session_with(const Pool* pool) {
  const Session* found = nullptr;
  Session::for_each_active([&](Session& it) {
    if (&it.engine().pool() == pool) found = &it;
  });
  return found;
}

// Where there is more than one.
std::string which_budget(const LastOutOfMemory& facts) {
  const Session* session = Session::active();
  const bool are_several = session != nullptr && session->has_older();
  return are_several ? " for " + facts.device.str() : "";
}

LastOutOfMemory facts_of(const MemoryReport& report) {
  LastOutOfMemory facts{.report = report, .budget = report.pool};
  if (this_thread.running != nullptr) facts.op = toString(this_thread.running->operator_name());
  const Session* session = session_with(report.of);
  if (session == nullptr) session = Session::active();
  if (session != nullptr) {
    facts.device = session->options().device;
    facts.budget = session->options().budget;
    const Session::Lasting lasting = session->lasting();
    facts.parameters = lasting.parameters;
    facts.gradients = lasting.gradients;
  }
  facts.most_budget = most_budget(device_at(facts.device));
  if (report.smallest_budget != 0) {
    facts.enough_budget = facts.budget + (report.smallest_budget - report.pool);
  }
  return facts;
}

// A line for each that holds memory, the largest first, and one for what is free.
std::string held_text(const LastOutOfMemory& facts) {
  const MemoryReport& report = facts.report;
  std::vector<std::pair<Bytes, std::string>> lines;
  for (std::size_t i = 0; i < kHolders; ++i) {
    const Holding& held = report.held[i];
    if (held.blocks == 0) continue;
    lines.emplace_back(held.bytes, " in " + std::to_string(held.blocks) +
                                       (held.blocks == 1 ? " block " : " blocks ") +
                                       std::string(describe(static_cast<Holder>(i))));
  }
  // Less than a grain is what was left over when the pool was cut into such.
  if (facts.budget >= report.pool + kGrainBytes) {
    lines.emplace_back(facts.budget - report.pool, " in use before it began");
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  lines.emplace_back(report.free, " free");
  std::string text;
  for (const auto& [bytes, what] : lines) {
    const std::string amount = format_bytes(bytes);
    text += std::string(kAmountWidth - std::min(amount.size(), kAmountWidth), ' ') + amount + what +
            "\n";
  }
  return text;
}

// Where all that could be evicted is, and it would not be enough; or where there is nothing that could be, and
// what is free is too little, or in pieces: state that goes on growing is told of at the first that fails.
std::string lasting_text(const LastOutOfMemory& facts) {
  const MemoryReport& report = facts.report;
  const bool is_too_much = report.lasting + report.requested > report.pool;
  const Bytes needed = report.lasting + report.held_as(Holder::kBeingMade).bytes;
  if (!is_too_much && needed < report.pool - report.free) return "";
  if (report.requested > facts.budget) {
    return "No eviction can help: this request alone is more than the budget of " +
           format_bytes(facts.budget) + ".\n";
  }
  const Bytes known = std::min(facts.parameters + facts.gradients, report.lasting);
  std::string text = "No eviction can help: ";
  if (facts.parameters > 0) text += "parameters (" + format_bytes(facts.parameters) + "), ";
  if (facts.gradients > 0) text += "gradients (" + format_bytes(facts.gradients) + "), ";
  text += std::string(known > 0 ? "what else" : "what") +
          " cannot be recomputed, like optimizer state and inputs (" +
          format_bytes(report.lasting - known) + "), ";
  if (!is_too_much) return text + "is all there is, and leaves no room for this request.\n";
  return text + "and this request need " + format_bytes(report.lasting + report.requested) +
         " alone, more than the budget.\n";
}

// Only of one that there can be.
std::string larger_budget_text(const LastOutOfMemory& facts) {
  if (facts.enough_budget <= facts.budget)
    return "a larger budget; coop plan says what each would cost";
  if (const auto enough = size_of_at_least(facts.enough_budget, facts.most_budget)) {
    return "coop.budget(\"" + *enough + "\") or coop run --budget " + *enough +
           ", which would serve this request; the next may need more";
  }
  const std::string who = facts.report.requested > facts.most_budget
                              ? "this request alone is"
                              : "with what is held, this request is";
  const std::string most = facts.most_budget < kMaxPoolBytes
                               ? "the " + format_bytes(facts.most_budget) + " that the device has"
                               : "a budget can be, which is less than 1 TiB";
  return "not a larger budget: " + who + " more than " + most;
}

std::string what_would_help(const LastOutOfMemory& facts) {
  const MemoryReport& report = facts.report;
  std::string text = "What would help:\n  - " + larger_budget_text(facts) + "\n";
  text += "  - a smaller batch\n";
  if (report.held_as(Holder::kExported).bytes > 0) {
    text +=
        "  - dropping arrays of numpy's and others who keep a tensor's address, and pinned "
        "tensors\n";
  }
  if (report.held_as(Holder::kSource).bytes + report.held_as(Holder::kElsewhere).bytes > 0) {
    text += "  - dropping tensors that cannot be recomputed, such as old results and inputs\n";
  }
  return text + "coop.last_oom() has these facts.";
}

std::string advice_for(const LastOutOfMemory& facts, const std::string& why) {
  const MemoryReport& report = facts.report;
  std::string text = "coop: out of memory: ";
  text += facts.op.empty() ? "a request for " : facts.op + " asked for ";
  text += format_bytes(report.requested);
  if (report.largest_room < report.requested) {
    text += ", and at most " + format_bytes(report.largest_room) + " can be made free in one piece";
  }
  text += ".\n" + (why.empty() ? "" : why + "\n") + lasting_text(facts) + "The budget of " +
          format_bytes(facts.budget) + which_budget(facts) + " has\n" + held_text(facts) +
          what_would_help(facts);
  return in_words_of_pytorch(facts.device.type(), text);
}

void note(LastOutOfMemory facts) {
  const std::scoped_lock lock(mutex);
  std::erase_if(all(), [&](const LastOutOfMemory& it) { return it.device == facts.device; });
  all().push_back(std::move(facts));
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

std::optional<LastOutOfMemory> last_out_of_memory(std::optional<c10::Device> device) {
  const std::scoped_lock lock(mutex);
  const auto found = std::find_if(all().rbegin(), all().rend(), [&](const LastOutOfMemory& it) {
    return !device || it.device == *device;
  });
  return found == all().rend() ? std::nullopt : std::optional(*found);
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

std::string what_would_halve(Bytes enough, Bytes most) {
  if (enough <= most) {
    return "About " + format_bytes(enough) + " would halve what is lost; so would a smaller batch.";
  }
  return "A smaller batch would help; a budget that does is more than the device has, " +
         format_bytes(most) + ".";
}

void raise_too_slow(const Loss& loss, double max_slowdown, const MemoryReport& report) {
  LastOutOfMemory facts = facts_of(report);
  facts.enough_budget = facts.budget + loss.more_to_halve;
  const std::string text =
      "coop: out of memory: with a budget of " + format_bytes(facts.budget) + which_budget(facts) +
      " the program is " + as_text(std::round(10 * loss.slowdown()) / 10) +
      " times slower than without, for what is recomputed; max_slowdown=" + as_text(max_slowdown) +
      " was asked for. " + what_would_halve(facts.enough_budget, facts.most_budget);
  const c10::DeviceType device = facts.device.type();
  note(std::move(facts));
  TORCH_CHECK_WITH(OutOfMemoryError, false, in_words_of_pytorch(device, text));
}

}  // namespace coop::plugin
