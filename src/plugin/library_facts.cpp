// What Python may ask about: functions of torch.ops.coop.
#include <string>
#include <tuple>
#include <vector>

#include <torch/library.h>

#include "plugin/device.hpp"
#include "plugin/dispatch_key.hpp"
#include "plugin/host_memory.hpp"
#include "plugin/last_out_of_memory.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

using Numbers = c10::Dict<std::string, std::int64_t>;

using MaybeDevice = std::optional<c10::Device>;

Numbers stats(MaybeDevice device) {
  const Snapshot snapshot = Session::snapshot(device);
  Numbers result;
  for (const auto& [name, value] : snapshot.totals) result.insert(name, value);
  for (const auto& [name, value] : snapshot.state) result.insert(name, value);
  return result;
}

// Bytes that operators made in the pool, by why they can never be evicted; "none": they can.
Numbers made_bytes(MaybeDevice device) {
  Numbers result;
  for (const auto& [why, bytes] : Session::snapshot(device).made) result.insert(why, bytes);
  return result;
}

std::vector<std::string> dispatch_keys() {
  std::vector<std::string> names;
  for (const c10::DispatchKey key : kOurKeys) names.emplace_back(c10::toString(key));
  return names;
}

double fragmentation(MaybeDevice device) {
  return Session::snapshot(device).evictions.fragmentation();
}

std::tuple<Numbers, Numbers> recomputed_by_operator(MaybeDevice device) {
  Numbers times;
  Numbers ns;
  for (const auto& [name, each] : Session::snapshot(device).by_operator) {
    times.insert(name, each.times);
    ns.insert(name, each.ns);
  }
  return {times, ns};
}

// For our own tests, of a device that PyTorch takes no snapshots of: (size, requested, is held) of each block in
// its order, and (action, address, size) of each event.
std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>> memory_snapshot() {
  const CurrentSession session;
  TORCH_CHECK(session, "coop: there is no budget");
  std::vector<std::int64_t> blocks;
  const auto segment = session->history().segment();
  blocks.push_back(static_cast<std::int64_t>(segment.address));
  for (const auto& it : segment.blocks) {
    for (const std::size_t each : {it.size, it.requested_size, std::size_t{it.allocated}}) {
      blocks.push_back(static_cast<std::int64_t>(each));
    }
  }
  std::vector<std::int64_t> events;
  for (const auto& it : session->device().history().entries()) {
    for (const std::size_t each : {static_cast<std::size_t>(it.action_), it.addr_, it.size_}) {
      events.push_back(static_cast<std::int64_t>(each));
    }
  }
  return {blocks, events};
}

void record_memory_history(std::int64_t most_entries) {
  const CurrentSession session;
  TORCH_CHECK(session, "coop: there is no budget");
  MemoryHistory& history = session->device().history();
  history.forget();
  if (most_entries > 0) {
    history.begin({.most_entries = static_cast<std::size_t>(most_entries)});
  } else {
    history.end();
  }
  session->history().follow();
}

// The operator, the facts, and bytes and blocks by what holds them; no facts if there are none.
std::tuple<std::string, c10::Device, Numbers, Numbers, Numbers> last_oom(MaybeDevice device) {
  Numbers facts;
  Numbers bytes;
  Numbers blocks;
  const auto last = last_out_of_memory(device);
  if (!last) return {"", c10::Device(c10::kCPU), facts, bytes, blocks};
  const auto put = [](Numbers& where, const std::string& name, auto value) {
    where.insert(name, static_cast<std::int64_t>(value));
  };
  put(facts, "asked_bytes", last->report.requested);
  put(facts, "budget_bytes", last->budget);
  put(facts, "free_bytes", last->report.free);
  put(facts, "largest_window_bytes", last->report.largest_room);
  const bool can_be = last->enough_budget <= last->most_budget;
  put(facts, "smallest_budget_bytes", can_be ? last->enough_budget : 0);
  put(facts, "lasting_bytes", last->report.lasting);
  put(facts, "parameter_bytes", last->parameters);
  put(facts, "gradient_bytes", last->gradients);
  for (std::size_t i = 0; i < kHolders; ++i) {
    const Holding& held = last->report.held[i];
    if (held.blocks == 0) continue;
    const std::string who(describe(static_cast<Holder>(i)));
    put(bytes, who, held.bytes);
    put(blocks, who, held.blocks);
  }
  return {last->op, last->device, facts, bytes, blocks};
}

// For our own tests, which have control groups of their own: (most, left) of each that has a limit.
std::vector<std::int64_t> limits_of_groups(const std::string& memberships,
                                           const std::string& mounted) {
  std::vector<std::int64_t> numbers;
  for (const GroupLimit& limit : group_limits(memberships, mounted)) {
    numbers.push_back(static_cast<std::int64_t>(limit.most));
    numbers.push_back(static_cast<std::int64_t>(limit.left));
  }
  return numbers;
}

TORCH_LIBRARY_FRAGMENT(coop, library) {
  // Of a device's memory, what nobody has now.
  library.def("free_bytes(Device device) -> int", [](c10::Device device) {
    return static_cast<std::int64_t>(device_at(device).free_bytes());
  });
  library.def("limits_of_groups(str memberships, str mounted) -> int[]", &limits_of_groups);
  // Of the budget on a device, or of the one that began last.
  library.def("stats(Device? device=None) -> Dict(str, int)", &stats);
  library.def("made_bytes(Device? device=None) -> Dict(str, int)", &made_bytes);
  // That there are: with a budget in force, or with something that lives in them.
  library.def("pools() -> int", [] { return static_cast<std::int64_t>(Session::pools()); });
  library.def("dispatch_keys() -> str[]", &dispatch_keys);
  library.def("fragmentation(Device? device=None) -> float", &fragmentation);
  library.def(
      "recomputed_by_operator(Device? device=None) -> (Dict(str, int) times, Dict(str, int) ns)",
      &recomputed_by_operator);
  library.def(
      "last_oom(Device? device=None) -> (str op, Device device, Dict(str, int) facts, Dict(str, "
      "int) bytes, Dict(str, int) blocks)",
      &last_oom);
  library.def("record_memory_history(int most_entries) -> ()", &record_memory_history);
  library.def("memory_snapshot() -> (int[] blocks, int[] events)", &memory_snapshot);
}

}  // namespace
}  // namespace coop::plugin
