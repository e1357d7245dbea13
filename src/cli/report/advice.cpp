#include <algorithm>
#include <string>
#include <vector>

#include "cli/commands/result_fields.hpp"
#include "cli/commands/simulating.hpp"
#include "cli/report/report.hpp"
#include "cli/text/format.hpp"
#include "core/base/bytes.hpp"

namespace coop::cli {
namespace {

constexpr std::size_t kSettingTheFloor = 3;  // named at most
constexpr double kMuch = 0.5;
constexpr double kScattered = 0.1;  // of the budget
constexpr double kManyTimes = 10;   // from there on, percents are not read any more

class Advice {
 public:
  explicit Advice(const ReportedRun& run) : run_(run) {}

  std::vector<std::string> all() {
    if (run_.result.is_ok()) {
      on_time();
      on_repetition();
    } else {
      on_failure();
    }
    on_floor();
    on_what_stays();
    on_fragmentation();
    return std::move(said_);
  }

 private:
  void say(std::string text) { said_.push_back(std::move(text)); }
  [[nodiscard]] static std::string more(double overhead) {
    if (overhead < kManyTimes) return format_percent(overhead);
    return format_decimal(overhead, 0) + " times";
  }
  [[nodiscard]] std::string share(double part, double whole) const {
    return format_percent(whole > 0 ? part / whole : 0);
  }

  void on_failure() {
    say("It does not fit: it ends " + place_of(*run_.result.failure) + ", where " +
        format_bytes(run_.result.failure->memory.requested) + " are asked for.");
    if (run_.smallest) {
      say("Give it " + format_bytes(run_.smallest->bytes) +
          ", the smallest budget that was found to work.");
    } else if (run_.is_floor_known) {
      say("No budget was found that it fits into.");
    }
  }

  void on_time() {
    const sim::StepResult& step = run_.result.last();
    const double lost = step.recomputed_ns + step.moving_ns;
    if (lost <= 0) {
      std::string text = "Nothing is lost: this budget costs no time.";
      if (run_.smallest && run_.smallest->bytes < run_.result.budget) {
        text += " A smaller one would do; see what it costs with --ratio.";
      }
      return say(text);
    }
    std::string text = std::string(run_.has_steps() ? "A step" : "It") + " takes " +
                       more(step.overhead()) + " more time: " + format_time(step.base_ns) +
                       " become " + format_time(step.total_ns()) + ".";
    if (step.more_to_halve > 0) {
      text += " With about " + format_bytes(run_.result.budget + step.more_to_halve) +
              " it would lose half of that.";
    }
    say(text);
  }

  void on_repetition() {
    const auto& list = run_.story.repetitions();
    double all = 0;
    for (const Repetition& it : list) all += it.ns;
    if (all <= 0) return;
    // By operator: a list by place has each of a hundred layers.
    std::vector<double> by_op(run_.loaded.trace.name_count());
    std::vector<std::uint64_t> times(by_op.size());
    for (const Repetition& it : list) {
      by_op[sim::index_of(it.place.op)] += it.ns;
      times[sim::index_of(it.place.op)] += it.times;
    }
    const auto most =
        static_cast<std::size_t>(std::max_element(by_op.begin(), by_op.end()) - by_op.begin());
    const std::string& op =
        run_.loaded.trace.name(sim::NameNumber{static_cast<std::uint32_t>(most)});
    say(share(by_op[most], all) + " of the lost time is " + op + ", which ran " +
        format_count(times[most], "time") + " more" + (run_.has_steps() ? " in this step." : "."));
  }

  void on_floor() {
    const sim::FailedAt* tightest = run_.tightest();
    if (tightest == nullptr) return;
    const MemoryReport& memory = tightest->memory;
    std::string where = run_.result.is_ok() && run_.smallest
                            ? "No less than " + format_bytes(run_.smallest->bytes) +
                                  " was found to work: the floor is set " + place_of(*tightest) +
                                  "."
                            : "What is in the way there:";
    if (tightest->is_too_slow && run_.smallest) {
      where += ' ';
      where += time_bound_text(*run_.smallest);
    }
    // What the running operator needs at once, then what is simply large.
    std::vector<LargeBlock> setters = memory.largest;
    std::stable_partition(setters.begin(), setters.end(), [](const LargeBlock& block) {
      return block.holder == Holder::kInput || block.holder == Holder::kBeingMade;
    });
    setters.resize(std::min(setters.size(), kSettingTheFloor));
    if (setters.empty()) return say(where);
    std::string names;
    Bytes together = 0;
    for (std::size_t i = 0; i < setters.size(); ++i) {
      if (i > 0) names += i + 1 == setters.size() ? " and " : ", ";
      names += title_of(run_, setters[i].storage) + " (" + format_bytes(setters[i].bytes) + ")";
      together += setters[i].bytes;
    }
    const bool is_one = setters.size() == 1;
    say(where +
        (is_one ? " One tensor that cannot go: "
                : " These " + std::to_string(setters.size()) + " tensors cannot go: ") +
        names + (is_one ? "." : ", " + format_bytes(together) + " together.") + beside(memory));
  }

  [[nodiscard]] static std::string beside(const MemoryReport& memory) {
    if (memory.requested == 0) return "";
    if (memory.largest_room < memory.requested) {
      return " Beside them " + format_bytes(memory.requested) + " are needed in one piece.";
    }
    return " Beside them there is no room for all that has to be computed again at the same time.";
  }

  void on_what_stays() {
    const sim::FailedAt* tightest = run_.tightest();
    if (tightest == nullptr || tightest->memory.pool == 0) return;
    const auto lasting = static_cast<double>(tightest->memory.lasting);
    const auto pool = static_cast<double>(tightest->memory.pool);
    if (lasting < kMuch * pool) return;
    say(share(lasting, pool) + " of that floor (" + format_bytes(tightest->memory.lasting) +
        ") is what the program keeps and no recomputation brings back: parameters, gradients, the "
        "optimizer's state. A leaner optimizer or a smaller type lowers it; a smaller batch does "
        "not.");
  }

  void on_fragmentation() {
    if (!run_.result.is_ok()) return;
    const sim::StepResult& step = run_.result.last();
    if (step.searches == 0 || step.fragmentation < kScattered) return;
    say(format_percent(step.fragmentation) +
        " of the budget was free in pieces too small to use when memory had to be made.");
  }

  const ReportedRun& run_;
  std::vector<std::string> said_;
};

}  // namespace

std::vector<std::string> advice_on(const ReportedRun& run) { return Advice(run).all(); }

std::string title_of(const ReportedRun& run, Token storage) {
  const sim::Trace& trace = run.loaded.trace;
  const std::string& name = trace.name(run.story.name_of(storage));
  if (!name.empty()) return name;
  if (storage == 0) return "an output or a workspace of the running operator";
  const Place maker = run.story.maker_of(storage);
  if (maker.op == sim::kNoName) return "a tensor from outside";
  const std::string& module = trace.name(maker.module);
  return "what " + trace.name(maker.op) + " made" + (module.empty() ? "" : " in " + module);
}

std::string without_numbers(const std::string& module) {
  std::string text;
  for (std::size_t at = 0; at <= module.size();) {
    const std::size_t end = std::min(module.find('.', at), module.size());
    const std::string_view part(module.data() + at, end - at);
    const bool is_number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    if (at > 0) text += '.';
    text += is_number ? std::string_view("*") : part;
    at = end + 1;
  }
  return text;
}

}  // namespace coop::cli
