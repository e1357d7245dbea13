#include "sim/simulator/decisions.hpp"

#include <algorithm>

#include "core/base/errors.hpp"
#include "core/engine/observer.hpp"
#include "sim/simulator/simulator.hpp"

namespace coop::sim {
namespace {

bool is_decision(const TraceEvent& event) {
  return event.kind == EventKind::kEvicted || event.kind == EventKind::kAgain;
}

class DecisionLog final : public EngineObserver {
 public:
  // To the engine a number is one more than it is, and 0 is nobody's.
  void on_event(const EngineEvent& event) noexcept override {
    const auto subject = static_cast<std::uint32_t>(event.token - 1);
    if (event.kind == EngineEvent::Kind::kEvicted) made_.push_back({EventKind::kEvicted, subject});
    if (event.kind == EngineEvent::Kind::kReplayed) made_.push_back({EventKind::kAgain, subject});
  }
  std::vector<TraceEvent> take() { return std::move(made_); }

 private:
  std::vector<TraceEvent> made_;
};

}  // namespace

std::size_t ComparedDecisions::count(EventKind kind) const {
  return static_cast<std::size_t>(std::count_if(
      recorded.begin(), recorded.end(), [&](const TraceEvent& it) { return it.kind == kind; }));
}

ComparedDecisions compare_decisions(const Trace& trace) {
  const auto& with = trace.recorded_with();
  if (!with || !with->has_decisions) {
    throw InvalidArgument(
        "there are no decisions in it: record it with coop.record(path, decisions=True)");
  }
  ComparedDecisions compared;
  std::copy_if(trace.events().begin(), trace.events().end(), std::back_inserter(compared.recorded),
               is_decision);
  DecisionLog log;
  const SimulationResult result =
      simulate(trace, {.policy = trace.name(with->policy),
                       .budget = with->budget,
                       .brings_back_outputs = false,
                       .engine = {.most_slowdown = with->most_slowdown, .observer = &log}});
  if (!result.is_ok()) compared.out_of_memory = result.failure->why;
  compared.simulated = log.take();
  const auto [a, b] = std::mismatch(compared.recorded.begin(), compared.recorded.end(),
                                    compared.simulated.begin(), compared.simulated.end());
  if (a != compared.recorded.end() || b != compared.simulated.end()) {
    compared.differs_at = static_cast<std::size_t>(a - compared.recorded.begin());
  }
  return compared;
}

std::string describe(const Trace& trace, const TraceEvent& decision) {
  if (decision.kind == EventKind::kAgain) {
    return "runs call " + std::to_string(decision.subject) +
           " again: " + trace.name(trace.call(decision.call()).op);
  }
  if (decision.storage() == kNoStorage) return "evicts a version that has since been overwritten";
  return "evicts storage " + std::to_string(decision.subject);
}

}  // namespace coop::sim
