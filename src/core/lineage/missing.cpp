#include "core/lineage/missing.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace coop {
namespace {

// Values that were met and not yet looked at. What does not fit is left out: the cost is high by then.
class Frontier {
 public:
  void add(ValueId id) {
    if (count_ < ids_.size()) ids_[count_++] = id;
  }
  void clear() { count_ = 0; }
  [[nodiscard]] bool is_empty() const { return count_ == 0; }
  ValueId take() { return ids_[--count_]; }

 private:
  std::array<ValueId, 128> ids_{};
  std::size_t count_ = 0;
};

constexpr int kMostLookedAt = 128;
// A gradient whose activations are gone hangs on all that came before it, most of which is not looked at.
constexpr double kForWhatWasNotSeen = 16;

// visit(const Value&) for everything missing that is reached, once each. False if that was not all.
template <typename Visit>
bool for_each_missing(Graph& graph, Frontier& frontier, std::uint64_t walk, const Visit& visit) {
  for (int left = kMostLookedAt; left > 0 && !frontier.is_empty(); --left) {
    Value& value = graph.values()[frontier.take()];
    if (value.is_resident() || value.is_source()) continue;
    if (std::exchange(value.seen_by, walk) == walk) continue;
    visit(value);
  }
  return frontier.is_empty();
}

}  // namespace

Missing missing_around(Graph& graph, const Value& value, std::uint64_t walk) noexcept {
  double cost = 0;
  Bytes widest = 0;
  Frontier frontier;
  const auto add_inputs = [&](const Value& of) {
    const Call& call = graph.calls()[of.producer];
    Bytes width = 0;
    graph.for_each_input(call, [&](const Edge& edge) {
      frontier.add(edge.value);
      const Value& input = graph.values()[edge.value];
      // What is changed where it is has one place.
      if (!input.is_source() && !edge.is_mutated) width += input.bytes;
    });
    graph.for_each_output(call, [&](ValueId, const Value& made) { width += made.bytes; });
    widest = std::max(widest, width);
  };
  add_inputs(value);
  const bool is_all = for_each_missing(graph, frontier, walk, [&](const Value& before) {
    cost += graph.calls()[before.producer].cost;
    add_inputs(before);
  });
  if (!is_all) cost *= kForWhatWasNotSeen;

  frontier.clear();
  const auto add_results = [&](const Value& of) {
    graph.for_each_reader(of, [&](const Edge& edge) {
      graph.for_each_output(graph.calls()[edge.call],
                            [&](ValueId made, const Value&) { frontier.add(made); });
    });
  };
  add_results(value);
  for_each_missing(graph, frontier, walk, [&](const Value& after) {
    if (after.is_current) cost += graph.calls()[after.producer].cost;
    add_results(after);
  });
  return {cost, widest};
}

}  // namespace coop
