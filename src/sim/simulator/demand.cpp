#include "sim/simulator/demand.hpp"

#include <algorithm>

namespace coop::sim {
namespace {

// fn(number of the event, bytes that it needs; 0: no more than the one before)
template <typename Function>
void for_each_need(const Trace& trace, Function&& fn) {
  Bytes alive = 0;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    const TraceEvent& event = trace.events()[i];
    Bytes needed = 0;
    switch (event.kind) {
      case EventKind::kSource:
      case EventKind::kForeign:
        alive += trace.storage(event.storage()).bytes;
        needed = alive;
        break;
      case EventKind::kCall: {
        const TraceCall call = trace.call(event.call());
        for (std::uint32_t k = 0; k < call.outputs; ++k) {
          alive += trace.storage(call.output(k)).bytes;
        }
        needed = alive + call.workspace_bytes;
        break;
      }
      case EventKind::kFinish: {
        const TraceCall call = trace.call(event.call());
        for (std::uint32_t k = 0; k < call.outputs; ++k) {
          const TraceStorage& output = trace.storage(call.output(k));
          alive += output.bytes - trace.block(output.block).bytes;
        }
        needed = alive;
        break;
      }
      case EventKind::kAdopt: {
        const TraceStorage& storage = trace.storage(event.storage());
        alive += storage.bytes - trace.block(storage.block).bytes;
        break;
      }
      case EventKind::kBlock:
        alive += trace.block(event.block()).bytes;
        needed = alive;
        break;
      case EventKind::kFree:
        alive -= trace.block(event.block()).bytes;
        break;
      case EventKind::kRelease:
        alive -= trace.storage(event.storage()).bytes;
        break;
      default:
        break;
    }
    fn(i, needed);
  }
}

}  // namespace

Demand measure_demand(const Trace& trace) {
  Demand demand;
  for_each_need(trace, [&](std::size_t event, Bytes needed) {
    if (needed <= demand.peak_bytes) return;
    demand.peak_bytes = needed;
    demand.peak_event = event;
  });
  for (std::uint32_t i = 0; i < trace.call_count(); ++i) {
    demand.base_ns += trace.call(CallNumber{i}).cost_ns;
  }
  return demand;
}

std::vector<double> measure_cost_by_step(const Trace& trace) {
  std::vector<double> costs{0};
  for (const TraceEvent& event : trace.events()) {
    if (event.kind == EventKind::kStep) costs.push_back(0);
    if (event.kind != EventKind::kCall && event.kind != EventKind::kFinish) continue;
    costs.back() += trace.call(event.call()).cost_ns;
  }
  return costs;
}

std::vector<Bytes> measure_demand_by_call(const Trace& trace) {
  std::vector<Bytes> by_call(trace.call_count());
  Bytes most = 0;
  for_each_need(trace, [&](std::size_t number, Bytes needed) {
    most = std::max(most, needed);
    const TraceEvent& event = trace.events()[number];
    if (event.kind != EventKind::kCall && event.kind != EventKind::kFinish) return;
    by_call[event.subject] = most;
    most = 0;
  });
  return by_call;
}

}  // namespace coop::sim
