// coop-sim info: what is in a trace.

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/shared_options.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/storage_names.hpp"
#include "cli/text/format.hpp"
#include "cli/text/json.hpp"
#include "cli/text/table.hpp"
#include "core/base/bytes.hpp"

namespace coop::cli {
namespace {

struct InfoOptions {
  std::string path;
  TraceOptions trace;
  bool is_json = false;
};

constexpr std::size_t kMostOfAKind = 10;

// What memory holds when most of it is needed.
enum class Kind : std::uint8_t { kForGood, kFromOutside, kComputed, kBeingMade, kWorkspace };
constexpr std::array<const char*, 5> kKinds{"from outside, never released", "from outside",
                                            "computed", "being computed", "workspace"};
constexpr std::array<const char*, 5> kKeys{"long_lived", "from_outside", "computed",
                                           "being_computed", "workspace"};

struct AtPeak {
  std::array<Bytes, kKinds.size()> bytes{};
  Bytes& of(Kind kind) { return bytes[static_cast<std::size_t>(kind)]; }
};

struct OpTotal {
  sim::NameNumber op{};
  std::size_t calls = 0;
  double cost_ns = 0;
  Bytes made_bytes = 0;
};

bool is_from_outside(sim::EventKind kind) {
  return kind == sim::EventKind::kSource || kind == sim::EventKind::kForeign ||
         kind == sim::EventKind::kAdopt;
}

bool is_call(sim::EventKind kind) {
  return kind == sim::EventKind::kCall || kind == sim::EventKind::kFinish;
}

// Of the memory that became the storage's.
Bytes bytes_before(const sim::Trace& trace, std::uint32_t storage) {
  const sim::BlockNumber block = trace.storages()[storage].block;
  return block == sim::kNoBlock ? 0 : trace.block(block).bytes;
}

void add_storages(AtPeak& peak, const sim::Trace& trace, const std::vector<bool>& is_alive,
                  const std::vector<bool>& is_released) {
  for (std::size_t i = 0; i < is_alive.size(); ++i) {
    if (!is_alive[i]) continue;
    const sim::TraceStorage& storage = trace.storages()[i];
    const Kind outside = is_released[i] ? Kind::kFromOutside : Kind::kForGood;
    peak.of(storage.is_output ? Kind::kComputed : outside) += storage.bytes;
  }
}

AtPeak look_at_peak(const LoadedTrace& loaded) {
  const sim::Trace& trace = loaded.trace;
  std::vector<bool> is_released(trace.storages().size());
  std::vector<bool> is_alive(trace.storages().size());
  AtPeak peak;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    const sim::TraceEvent& event = trace.events()[i];
    const bool is_before = i <= loaded.demand.peak_event;
    if (event.kind == sim::EventKind::kRelease) {
      is_released[event.subject] = true;
      if (is_before) is_alive[event.subject] = false;
    } else if (is_from_outside(event.kind) && is_before) {
      is_alive[event.subject] = true;
      peak.of(Kind::kWorkspace) -= bytes_before(trace, event.subject);
    } else if (event.kind == sim::EventKind::kBlock && is_before) {
      peak.of(Kind::kWorkspace) += trace.block(event.block()).bytes;
    } else if (event.kind == sim::EventKind::kFree && is_before) {
      peak.of(Kind::kWorkspace) -= trace.block(event.block()).bytes;
    } else if (is_call(event.kind) && is_before) {
      const sim::TraceCall call = trace.call(event.call());
      const bool is_peak = i == loaded.demand.peak_event;
      if (is_peak) peak.of(Kind::kWorkspace) += call.workspace_bytes;
      for (std::uint32_t k = 0; k < call.outputs; ++k) {
        const std::uint32_t output = sim::index_of(call.output(k));
        is_alive[output] = !is_peak;
        peak.of(Kind::kWorkspace) -= bytes_before(trace, output);
        if (is_peak) peak.of(Kind::kBeingMade) += trace.storages()[output].bytes;
      }
    }
  }
  add_storages(peak, trace, is_alive, is_released);
  return peak;
}

std::vector<OpTotal> totals_by_op(const sim::Trace& trace) {
  std::vector<OpTotal> totals(trace.name_count());
  for (std::uint32_t i = 0; i < trace.call_count(); ++i) {
    const sim::TraceCall call = trace.call(sim::CallNumber{i});
    OpTotal& total = totals[sim::index_of(call.op)];
    total.op = call.op;
    ++total.calls;
    total.cost_ns += call.cost_ns;
    for (std::uint32_t k = 0; k < call.outputs; ++k) {
      total.made_bytes += trace.storage(call.output(k)).bytes;
    }
  }
  std::erase_if(totals, [](const OpTotal& total) { return total.calls == 0; });
  std::stable_sort(totals.begin(), totals.end(),
                   [](const OpTotal& a, const OpTotal& b) { return a.cost_ns > b.cost_ns; });
  return totals;
}

// Storages of one size that go by one name.
struct Alike {
  std::string name;
  Bytes bytes = 0;
  std::size_t count = 0;
};

std::vector<Alike> largest_storages(const sim::Trace& trace) {
  const StorageNames names(trace);
  std::map<std::pair<Bytes, std::string>, std::size_t, std::greater<>> counts;
  for (std::uint32_t i = 0; i < trace.storages().size(); ++i) {
    ++counts[{trace.storages()[i].bytes, names.name(sim::StorageNumber{i})}];
  }
  std::vector<Alike> largest;
  for (const auto& [storage, count] : counts) {
    if (largest.size() == kMostOfAKind) break;
    largest.push_back({.name = storage.second, .bytes = storage.first, .count = count});
  }
  return largest;
}

std::string as_json(const LoadedTrace& loaded) {
  const sim::Trace& trace = loaded.trace;
  JsonWriter json;
  json.begin_object();
  json.field("trace", loaded.path);
  json.field("steps", trace.step_count());
  json.field("calls", trace.call_count());
  json.field("storages", trace.storages().size());
  json.field("peak_bytes", loaded.demand.peak_bytes);
  json.field("base_ns", loaded.demand.base_ns);
  json.key("at_peak_bytes");
  json.begin_object();
  const AtPeak peak = look_at_peak(loaded);
  for (std::size_t i = 0; i < kKeys.size(); ++i) json.field(kKeys[i], peak.bytes[i]);
  json.end_object();
  json.objects("ops", totals_by_op(trace), [&](const OpTotal& total) {
    json.field("op", trace.name(total.op));
    json.field("calls", total.calls);
    json.field("ns", total.cost_ns);
    json.field("made_bytes", total.made_bytes);
  });
  json.objects("largest", largest_storages(trace), [&](const Alike& each) {
    json.field("name", each.name);
    json.field("bytes", each.bytes);
    json.field("count", each.count);
  });
  json.end_object();
  return json.finish();
}

std::string as_text(const LoadedTrace& loaded) {
  const sim::Trace& trace = loaded.trace;
  std::string text = loaded.path + ": " + format_count(trace.step_count(), "step") + ", " +
                     format_count(trace.call_count(), "call") + ", " +
                     format_time(loaded.demand.base_ns) + ", " +
                     format_count(trace.storages().size(), "storage") + ", peak " +
                     format_bytes(loaded.demand.peak_bytes) + "\n\n";
  Table at_peak;
  at_peak.add_row({"at the peak", "bytes", "share"});
  const AtPeak peak = look_at_peak(loaded);
  const auto whole = static_cast<double>(std::max<Bytes>(loaded.demand.peak_bytes, 1));
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    at_peak.add_row({kKinds[i], format_bytes(peak.bytes[i]),
                     format_percent(static_cast<double>(peak.bytes[i]) / whole)});
  }
  const std::vector<OpTotal> totals = totals_by_op(trace);
  Table ops;
  ops.add_row({"operators, " + std::to_string(std::min(totals.size(), kMostOfAKind)) + " of " +
                   std::to_string(totals.size()),
               "calls", "time", "share", "made"});
  for (std::size_t i = 0; i < std::min(totals.size(), kMostOfAKind); ++i) {
    const OpTotal& total = totals[i];
    ops.add_row(
        {trace.name(total.op), std::to_string(total.calls), format_time(total.cost_ns),
         format_percent(loaded.demand.base_ns > 0 ? total.cost_ns / loaded.demand.base_ns : 0),
         format_bytes(total.made_bytes)});
  }
  Table largest;
  largest.add_row({"largest storages", "bytes each", "how many"});
  for (const Alike& each : largest_storages(trace)) {
    largest.add_row({each.name, format_bytes(each.bytes), std::to_string(each.count)});
  }
  return text + at_peak.text() + "\n" + ops.text() + "\n" + largest.text();
}

int show_info(const InfoOptions& options) {
  const LoadedTrace loaded = load_trace(options.path, options.trace);
  print(options.is_json ? as_json(loaded) : as_text(loaded));
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Action& chosen) {
  add_subcommand<InfoOptions>(
      app, chosen, "info", "What is in a trace: operators, storages, peak.",
      "coop-sim info tests/data/h200/resnet50.log.gz --inplace",
      [](CLI::App& info, InfoOptions& options) {
        add_trace_argument(info, options.path);
        add_trace_options(info, options.trace);
        info.add_flag("--json", options.is_json, "for programs");
      },
      show_info);
}

}  // namespace coop::cli
