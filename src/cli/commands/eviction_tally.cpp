#include "cli/commands/eviction_tally.hpp"

namespace coop::cli {
namespace {

// Those that occur, in an order that does not depend on anything but the figures.
template <typename Figure>
std::vector<EvictionTally::Line> sorted(std::vector<EvictionTally::Line> lines, Figure&& figure) {
  std::erase_if(lines, [](const auto& line) { return line.times == 0; });
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const auto& a, const auto& b) { return figure(a) > figure(b); });
  return lines;
}

}  // namespace

EvictionTally::EvictionTally(const sim::Trace& trace, const StorageNames& names)
    : trace_(trace),
      names_(names),
      evicted_(trace.name_count() + 1),
      recomputed_(trace.name_count() + 1) {
  for (std::uint32_t i = 0; i < evicted_.size(); ++i) evicted_[i].op = recomputed_[i].op = i;
}

void EvictionTally::on_event(const EngineEvent& event) noexcept {
  if (event.kind == EngineEvent::Kind::kEvicted) {
    const bool is_past = event.token == 0;
    const auto storage = static_cast<std::uint32_t>(event.token - 1);
    const std::uint32_t op =
        is_past ? past_version() : sim::index_of(names_.op(sim::StorageNumber{storage}));
    ++evicted_[op].times;
    evicted_[op].bytes += event.bytes;
  } else if (event.kind == EngineEvent::Kind::kReplayed) {
    const sim::CallNumber call{static_cast<std::uint32_t>(event.token - 1)};
    Line& line = recomputed_[sim::index_of(trace_.call(call).op)];
    ++line.times;
    line.ns += event.cost;
  }
}

std::vector<EvictionTally::Line> EvictionTally::evicted() const {
  return sorted(evicted_, [](const Line& line) { return line.bytes; });
}

std::vector<EvictionTally::Line> EvictionTally::recomputed() const {
  return sorted(recomputed_, [](const Line& line) { return line.ns; });
}

std::string EvictionTally::name(std::uint32_t op) const {
  if (op == past_version()) return "(since overwritten)";
  const std::string& text = trace_.name(sim::NameNumber{op});
  return text.empty() ? "(from outside, overwritten)" : text;
}

}  // namespace coop::cli
