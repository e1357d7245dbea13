#include "cli/picture/memory_map.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "cli/picture/axis.hpp"
#include "cli/picture/pixel_grid.hpp"
#include "cli/picture/svg.hpp"
#include "cli/storage_names.hpp"
#include "cli/text/format.hpp"
#include "core/base/bytes.hpp"

namespace coop::cli {
namespace {

using sim::BlockSpan;
using sim::BlockUse;

constexpr double kWidth = 1200;
constexpr double kHeight = 780;
constexpr Box kMap{.x = 84, .y = 128, .width = 1096, .height = 450};
constexpr Box kTraffic{.x = 84, .y = 606, .width = 1096, .height = 100};  // under the map
constexpr double kCell = 2;           // of the grid that gathers small blocks
constexpr double kLeastBox = 3;       // pixels either way; smaller ones are gathered
constexpr double kTrafficColumn = 4;  // pixels of time summed up in one bar
constexpr double kLeastMarkGap = 60;  // pixels for the label of a mark

struct Use {
  std::string_view css_class;
  std::string_view label;
};
// In the order of BlockUse.
constexpr std::array<Use, sim::kBlockUses> kUses{{{"source", "long-lived"},
                                                  {"activation", "computed"},
                                                  {"recomputed", "computed again"},
                                                  {"workspace", "workspace"}}};
static_assert(kUses.size() == PixelGrid::kKinds);

constexpr std::string_view kMapStyle = R"(
.free { fill: #f3f5f8; }
.source { fill: #7d8896; }
.activation { fill: #6aaee0; }
.recomputed { fill: #f2a93b; }
.workspace { fill: #b9a3d9; }
rect.block { stroke: #ffffff; stroke-width: 0.5; }
.evicted-bar { fill: #c8102e; }
.returned-bar { fill: #f2a93b; }
.returned-edge { fill: #8a5200; }
.mark { stroke: #1c2430; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  .free { fill: #1d232c; }
  .source { fill: #66707d; }
  .activation { fill: #3f83b8; }
  .recomputed { fill: #d98e1f; }
  .workspace { fill: #8f78b5; }
  rect.block { stroke: #14181f; }
  .evicted-bar { fill: #ff5a6e; }
  .returned-bar { fill: #d98e1f; }
  .returned-edge { fill: #ffd27f; }
  .mark { stroke: #e4e8ee; }
}
)";

class MemoryMap {
 public:
  MemoryMap(const sim::BlockHistory& history, const MappedRun& run)
      : history_(history),
        run_(run),
        names_(run.trace),
        title_("Memory of " + run.name + " in " + format_bytes(run.result.budget)),
        svg_(kWidth, kHeight, title_,
             "Addresses against time; every block in the colour of what it was for.") {
    svg_.add_style(kCommonStyle);
    svg_.add_style(kMapStyle);
  }

  Picture draw() {
    svg_.add_box({.width = kWidth, .height = kHeight}, "ground");
    draw_head();
    svg_.add_box(kMap, "free");
    draw_blocks();
    draw_edges();
    draw_traffic();
    draw_axes();
    draw_marks();
    return {.title = title_, .svg = svg_.finish(), .height = kHeight};
  }

 private:
  [[nodiscard]] double x_of(double ns) const {
    return kMap.x + (history_.end_ns() > 0 ? ns / history_.end_ns() * kMap.width : 0);
  }
  [[nodiscard]] double y_of(Bytes offset) const {
    const auto part = static_cast<double>(offset) / static_cast<double>(run_.result.budget);
    return kMap.y + kMap.height - part * kMap.height;
  }
  [[nodiscard]] Box box_of(const BlockSpan& span) const {
    const double left = x_of(span.begin_ns);
    const double top = y_of(span.offset + span.bytes);
    return {
        .x = left, .y = top, .width = x_of(span.end_ns) - left, .height = y_of(span.offset) - top};
  }

  void draw_head() {
    const double ratio = static_cast<double>(run_.result.budget) /
                         static_cast<double>(std::max<Bytes>(run_.peak, 1));
    svg_.add_text({kMap.x, 34}, title_, "title");
    svg_.add_text({kMap.x, 58},
                  format_percent(ratio) + " of the " + format_bytes(run_.peak) +
                      " that it takes without a budget; policy " + run_.policy + "; " + outcome(),
                  "faint");
    double x = kMap.x;
    const auto add_key = [&](std::string_view css_class, std::string_view label) {
      svg_.add_box({.x = x, .y = 76, .width = 14, .height = 14}, css_class);
      svg_.add_text({x + 20, 88}, label, "");
      x += 40 + 7.6 * static_cast<double>(label.size());
    };
    for (const Use& use : kUses) add_key(use.css_class, use.label);
    add_key("free", "free");
    add_key("evicted-bar", "right edge: evicted here");
    add_key("returned-edge", "left edge: computed again here");
  }

  [[nodiscard]] std::string outcome() const {
    if (!run_.result.is_ok()) return "runs out of memory where the map ends";
    const sim::StepResult& last = run_.result.last();
    return "overhead " + format_percent(last.overhead()) + ", fragmentation " +
           format_percent(last.fragmentation) + ", " + format_count(last.evictions, "eviction") +
           ", " + format_count(last.recomputed_calls, "call") + " computed again" +
           (run_.result.steps.size() > 1 ? " in the last step" : "");
  }

  void draw_blocks() {
    PixelGrid small(kMap, kCell);
    std::vector<const BlockSpan*> large;
    for (const BlockSpan& span : history_.spans()) {
      const Box box = box_of(span);
      if (box.width >= kLeastBox && box.height >= kLeastBox) {
        large.push_back(&span);
      } else {
        small.cover(box, static_cast<std::size_t>(span.use));
      }
    }
    for (std::size_t use = 0; use < kUses.size(); ++use) {
      svg_.add_path(small.path_of(use), kUses[use].css_class);
    }
    for (const BlockSpan* span : large) {
      const Use& use = kUses[static_cast<std::size_t>(span->use)];
      svg_.add_box(box_of(*span), "block " + std::string(use.css_class), tip_of(*span));
    }
  }

  [[nodiscard]] std::string tip_of(const BlockSpan& span) const {
    const std::string name = names_.name_of_token(span.storage);
    return (name.empty() ? "" : name + ": ") + format_bytes(span.bytes) + ", " +
           std::string(kUses[static_cast<std::size_t>(span.use)].label) + ", " +
           format_time(span.begin_ns) + " to " + format_time(span.end_ns) +
           (span.ends_evicted ? ", then evicted" : "");
  }

  // One stroke for all edges in a column of pixels that touch.
  void draw_edges() {
    PixelGrid evicted(kMap, 1);
    PixelGrid returned(kMap, 1);
    for (const BlockSpan& span : history_.spans()) {
      const Box box = box_of(span);
      if (span.ends_evicted) {
        evicted.cover({.x = box.x + box.width - 1, .y = box.y, .width = 1, .height = box.height},
                      0);
      }
      if (span.use == BlockUse::kRecomputed) {
        returned.cover({.x = box.x, .y = box.y, .width = 1, .height = box.height}, 0);
      }
    }
    svg_.add_path(returned.path_of(0), "returned-edge");
    svg_.add_path(evicted.path_of(0), "evicted-bar");
  }

  // Upwards what came back, downwards what went.
  void draw_traffic() {
    const auto columns = static_cast<std::size_t>(kTraffic.width / kTrafficColumn);
    std::vector<double> evicted(columns);
    std::vector<double> returned(columns);
    const auto column_of = [&](double ns) {
      const auto column = static_cast<std::size_t>((x_of(ns) - kMap.x) / kTrafficColumn);
      return std::min(column, columns - 1);
    };
    for (const BlockSpan& span : history_.spans()) {
      const auto bytes = static_cast<double>(span.bytes);
      if (span.ends_evicted) evicted[column_of(span.end_ns)] += bytes;
      if (span.use == BlockUse::kRecomputed) returned[column_of(span.begin_ns)] += bytes;
    }
    const double most = std::max({*std::max_element(evicted.begin(), evicted.end()),
                                  *std::max_element(returned.begin(), returned.end()), 1.0});
    const double zero = kTraffic.y + kTraffic.height / 2;
    std::string up;
    std::string down;
    for (std::size_t i = 0; i < columns; ++i) {
      const double x = kTraffic.x + static_cast<double>(i) * kTrafficColumn;
      const double scale = kTraffic.height / 2 / most;
      const double back = returned[i] * scale;
      const double gone = evicted[i] * scale;
      if (back > 0) up += box_path({x, zero - back, kTrafficColumn - 1, back});
      if (gone > 0) down += box_path({x, zero, kTrafficColumn - 1, gone});
    }
    svg_.add_path(up, "returned-bar");
    svg_.add_path(down, "evicted-bar");
    svg_.add_line({kTraffic.x, zero}, {kTraffic.x + kTraffic.width, zero}, "frame");
    svg_.add_text({kTraffic.x - 8, zero - 18}, "back", "end faint");
    svg_.add_text({kTraffic.x - 8, zero + 26}, "evicted", "end faint");
    svg_.add_text({kTraffic.x + kTraffic.width, kTraffic.y - 4},
                  "the longest bar: " + format_bytes(static_cast<Bytes>(most)) + " in " +
                      format_time(history_.end_ns() / static_cast<double>(columns)),
                  "end faint");
  }

  void draw_axes() {
    svg_.add_box(kMap, "frame");
    const Axis addresses = bytes_axis(run_.result.budget, 6);
    for (const Tick& tick : addresses.ticks) {
      const double y = y_of(static_cast<Bytes>(tick.value));
      svg_.add_line({kMap.x - 5, y}, {kMap.x, y}, "frame");
      svg_.add_text({kMap.x - 9, y + 4}, tick.label, "end");
    }
    svg_.add_upright_text({24, kMap.y + kMap.height / 2}, "address (" + addresses.unit + ")",
                          "middle");
    const Axis time = time_axis(history_.end_ns(), 10);
    const double bottom = kTraffic.y + kTraffic.height;
    for (const Tick& tick : time.ticks) {
      const double x = x_of(tick.value);
      svg_.add_line({x, bottom}, {x, bottom + 5}, "frame");
      svg_.add_text({x, bottom + 20}, tick.label, "middle");
    }
    svg_.add_text({kMap.x + kMap.width / 2, bottom + 44},
                  "time (" + time.unit + " of operators, with those that run again)", "middle");
  }

  // Steps before remarks, as many as have room for their labels.
  void draw_marks() {
    struct Stretch {
      double from;
      double to;
    };
    std::vector<Stretch> taken;
    const auto draw = [&](double x, const std::string& label) {
      const double width = std::max(kLeastMarkGap, 10 + 7.6 * static_cast<double>(label.size()));
      const bool is_near_end = x + width > kMap.x + kMap.width;
      const Stretch wanted{is_near_end ? x - width : x, is_near_end ? x : x + width};
      for (const Stretch& each : taken) {
        if (wanted.from < each.to && each.from < wanted.to) return;
      }
      taken.push_back(wanted);
      svg_.add_line({x, kMap.y - 8}, {x, kMap.y + kMap.height}, "mark");
      svg_.add_text({is_near_end ? x - 4 : x + 4, kMap.y - 6}, label, is_near_end ? "end" : "");
    };
    std::size_t step = 0;
    for (const sim::TimeMark& mark : history_.marks()) {
      if (mark.is_step) draw(x_of(mark.ns), "step " + std::to_string(++step));
    }
    for (const sim::TimeMark& mark : history_.marks()) {
      if (!mark.is_step) draw(x_of(mark.ns), run_.trace.name(mark.text));
    }
  }

  const sim::BlockHistory& history_;
  const MappedRun& run_;
  StorageNames names_;
  std::string title_;
  Svg svg_;
};

}  // namespace

Picture draw_memory_map(sim::BlockHistory& history, const MappedRun& run) {
  history.finish();
  return MemoryMap(history, run).draw();
}

}  // namespace coop::cli
