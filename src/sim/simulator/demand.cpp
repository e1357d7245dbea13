#include "sim/simulator/demand.hpp"

namespace coop::sim {

Demand measure_demand(const Trace& trace) {
  Demand demand;
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
        demand.base_ns += call.cost_ns;
        break;
      }
      case EventKind::kFinish: {
        const TraceCall call = trace.call(event.call());
        for (std::uint32_t k = 0; k < call.outputs; ++k) {
          const TraceStorage& output = trace.storage(call.output(k));
          alive += output.bytes - trace.block(output.block).bytes;
        }
        needed = alive;
        demand.base_ns += call.cost_ns;
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
    if (needed > demand.peak_bytes) {
      demand.peak_bytes = needed;
      demand.peak_event = i;
    }
  }
  return demand;
}

}  // namespace coop::sim
