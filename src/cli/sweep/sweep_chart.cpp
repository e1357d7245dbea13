#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "cli/picture/axis.hpp"
#include "cli/picture/svg.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "cli/text/format.hpp"

namespace coop::cli {
namespace {

constexpr double kWidth = 1200;
constexpr double kHeadHeight = 96;
constexpr double kRowHeight = 300;
constexpr double kPanelHeight = 196;
constexpr double kPanelWidth = 308;
constexpr double kFirstPanel = 72;
constexpr double kPanelStride = 390;
constexpr double kInset = 18;  // between the frame and the first and last ratio
constexpr std::size_t kColours = 7;
constexpr double kMostTimesMedian = 8;

constexpr std::string_view kChartStyle = R"(
polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.cross { fill: none; stroke-width: 1.6; }
.beyond { font-size: 10px; }
.s0 { stroke: #1f6fb5; } .s1 { stroke: #d1495b; } .s2 { stroke: #2a9d63; } .s3 { stroke: #8f5fbf; }
.s4 { stroke: #c98a00; } .s5 { stroke: #00889b; } .s6 { stroke: #5f6b7a; }
.f0 { fill: #1f6fb5; } .f1 { fill: #d1495b; } .f2 { fill: #2a9d63; } .f3 { fill: #8f5fbf; }
.f4 { fill: #c98a00; } .f5 { fill: #00889b; } .f6 { fill: #5f6b7a; }
.reference { stroke: #5a6675; stroke-width: 1.5; stroke-dasharray: 5 4; fill: none; }
@media (prefers-color-scheme: dark) {
  .s0 { stroke: #5fb0f2; } .s1 { stroke: #ff7a8a; } .s2 { stroke: #5fd394; }
  .s3 { stroke: #c39bf0; } .s4 { stroke: #f0bf4c; } .s5 { stroke: #4fd0e0; }
  .s6 { stroke: #a5b0bd; }
  .f0 { fill: #5fb0f2; } .f1 { fill: #ff7a8a; } .f2 { fill: #5fd394; } .f3 { fill: #c39bf0; }
  .f4 { fill: #f0bf4c; } .f5 { fill: #4fd0e0; } .f6 { fill: #a5b0bd; }
  .reference { stroke: #9aa7b5; }
}
)";

struct Panel {
  const char* title;
  const char* unit;
  std::function<double(const sim::StepResult&)> figure;
  bool has_references = false;
  bool has_outliers = false;  // close to the floor it may be a hundred times what it is elsewhere
};

const std::array<Panel, 3>& panels() {
  using Step = sim::StepResult;
  static const std::array<Panel, 3> kPanels{
      {{"overhead", "%", [](const Step& step) { return 100 * step.overhead(); }, true, true},
       {"fragmentation", "%", [](const Step& step) { return 100 * step.fragmentation; }},
       {"search time a step", "ms",
        [](const Step& step) { return static_cast<double>(step.search_ns) / 1e6; }}}};
  return kPanels;
}

std::string class_of(char kind, std::size_t policy) {
  return kind + std::to_string(policy % kColours);
}

// One panel of one trace: where its values lie.
class Frame {
 public:
  Frame(const Box& box, const std::vector<double>& ratios, double most)
      : box_(box),
        least_ratio_(*std::min_element(ratios.begin(), ratios.end())),
        most_ratio_(*std::max_element(ratios.begin(), ratios.end())),
        most_(most) {}

  [[nodiscard]] const Box& box() const { return box_; }
  [[nodiscard]] double most() const { return most_; }
  [[nodiscard]] bool contains(double ratio) const {
    return ratio >= least_ratio_ && ratio <= most_ratio_;
  }
  [[nodiscard]] double x_of(double ratio) const {
    const double range = most_ratio_ - least_ratio_;
    const double part = range > 0 ? (ratio - least_ratio_) / range : 0.5;
    return box_.x + kInset + part * (box_.width - 2 * kInset);
  }
  [[nodiscard]] double y_of(double value) const {
    return box_.y + box_.height * (1 - std::min(value / most_, 1.0));
  }
  [[nodiscard]] Point at(double ratio, double value) const { return {x_of(ratio), y_of(value)}; }

 private:
  Box box_;
  double least_ratio_;
  double most_ratio_;
  double most_;
};

class SweepChart {
 public:
  SweepChart(const Sweep& sweep, const std::vector<Reference>& references)
      : sweep_(sweep),
        references_(references),
        height_(kHeadHeight + kRowHeight * static_cast<double>(sweep.plan().traces.size())),
        svg_(kWidth, height_, kTitle,
             "Overhead, fragmentation and search time against the memory ratio.") {
    svg_.add_style(kCommonStyle);
    svg_.add_style(kChartStyle);
    for (std::size_t i = 0; i < plan().ratios.size(); ++i) by_ratio_.push_back(i);
    std::sort(by_ratio_.begin(), by_ratio_.end(),
              [&](std::size_t a, std::size_t b) { return plan().ratios[a] < plan().ratios[b]; });
  }

  Picture draw() {
    svg_.add_box({.width = kWidth, .height = height_}, "ground");
    draw_head();
    for (std::size_t trace = 0; trace < plan().traces.size(); ++trace) draw_row(trace);
    return {.title = kTitle, .svg = svg_.finish(), .height = height_};
  }

 private:
  static constexpr const char* kTitle = "What smaller budgets cost";

  [[nodiscard]] const SweepPlan& plan() const { return sweep_.plan(); }
  [[nodiscard]] const sim::SimulationResult* result(std::size_t trace, std::size_t policy,
                                                    std::size_t ratio) const {
    const auto& found = sweep_.result({.trace = trace, .policy = policy, .ratio = ratio});
    return found ? &*found : nullptr;
  }

  void draw_head() {
    svg_.add_text({kFirstPanel, 34}, kTitle, "title");
    double x = kFirstPanel;
    const auto add_key = [&](const std::string& css_class, std::string_view label) {
      const std::array<Point, 2> line{{{x, 60}, {x + 24, 60}}};
      svg_.add_polyline(line, css_class);
      svg_.add_text({x + 30, 64}, label, "");
      x += 60 + 7.6 * static_cast<double>(label.size());
    };
    for (std::size_t i = 0; i < plan().policies.size(); ++i) {
      add_key(class_of('s', i), plan().policies[i]);
    }
    std::vector<std::string> shown;
    for (const LoadedTrace& loaded : plan().traces) {
      for (const Reference& each : references_for(references_, loaded.name)) {
        if (std::find(shown.begin(), shown.end(), each.name) == shown.end()) {
          shown.push_back(each.name);
          add_key("reference", each.name);
        }
      }
    }
    svg_.add_text({x, 64}, "x: does not fit", "faint");
  }

  void draw_row(std::size_t trace) {
    const LoadedTrace& loaded = plan().traces[trace];
    const double top = kHeadHeight + kRowHeight * static_cast<double>(trace);
    svg_.add_text({kFirstPanel, top + 12},
                  loaded.name + ", peak " + format_bytes(loaded.demand.peak_bytes), "heading");
    for (std::size_t i = 0; i < panels().size(); ++i) {
      const Panel& panel = panels()[i];
      const std::vector<Reference> references = panel.has_references
                                                    ? references_for(references_, loaded.name)
                                                    : std::vector<Reference>();
      const Frame frame({.x = kFirstPanel + kPanelStride * static_cast<double>(i),
                         .y = top + 44,
                         .width = kPanelWidth,
                         .height = kPanelHeight},
                        plan().ratios, most_of(trace, panel, references));
      draw_axes(frame, panel);
      for (const Reference& each : references) draw_reference(frame, each);
      for (std::size_t policy = 0; policy < plan().policies.size(); ++policy) {
        draw_policy(frame, panel, trace, policy);
      }
    }
  }

  // The top of the panel: a little above the largest value, but for those so far from the others that nothing
  // else could be told apart: they are written down.
  [[nodiscard]] double most_of(std::size_t trace, const Panel& panel,
                               const std::vector<Reference>& references) const {
    std::vector<double> values;
    for (std::size_t policy = 0; policy < plan().policies.size(); ++policy) {
      for (const std::size_t ratio : by_ratio_) {
        const sim::SimulationResult* found = result(trace, policy, ratio);
        if (found != nullptr && found->is_ok()) values.push_back(panel.figure(found->last()));
      }
    }
    for (const Reference& reference : references) {
      for (const double ratio : plan().ratios) {
        const ReferenceFigure* figure = reference.at(ratio);
        if (figure != nullptr && figure->overhead) values.push_back(100 * *figure->overhead);
      }
    }
    std::erase_if(values, [](double value) { return value <= 0; });
    if (values.empty()) return 1;
    std::sort(values.begin(), values.end());
    const double limit = kMostTimesMedian * values[values.size() / 2];
    while (panel.has_outliers && values.back() > limit) values.pop_back();
    return values.back() * 1.08;
  }

  void draw_axes(const Frame& frame, const Panel& panel) {
    const Box& box = frame.box();
    for (const Tick& tick : plain_axis(frame.most(), 4, panel.unit).ticks) {
      const double y = frame.y_of(tick.value);
      svg_.add_line({box.x, y}, {box.x + box.width, y}, "grid");
      svg_.add_text({box.x - 7, y + 4}, tick.label, "end");
    }
    for (const std::size_t i : by_ratio_) {
      const double x = frame.x_of(plan().ratios[i]);
      svg_.add_line({x, box.y + box.height}, {x, box.y + box.height + 5}, "frame");
      svg_.add_text({x, box.y + box.height + 20}, format_ratio(plan().ratios[i]), "middle");
    }
    svg_.add_box(box, "frame");
    svg_.add_text({box.x, box.y - 8}, std::string(panel.title) + " (" + panel.unit + ")", "faint");
    svg_.add_text({box.x + box.width / 2, box.y + box.height + 38}, "budget / peak",
                  "middle faint");
  }

  void draw_reference(const Frame& frame, const Reference& reference) {
    std::vector<ReferenceFigure> figures = reference.figures;
    std::sort(figures.begin(), figures.end(),
              [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
    std::vector<Point> points;
    for (const ReferenceFigure& figure : figures) {
      if (!figure.overhead || !frame.contains(figure.ratio)) continue;
      if (100 * *figure.overhead > frame.most()) continue;  // beyond the top
      points.push_back(frame.at(figure.ratio, 100 * *figure.overhead));
    }
    if (points.size() > 1) svg_.add_polyline(points, "reference");
    for (const Point& point : points) svg_.add_dot(point, 2, "reference");
  }

  void draw_policy(const Frame& frame, const Panel& panel, std::size_t trace, std::size_t policy) {
    std::vector<Point> points;
    for (const std::size_t i : by_ratio_) {
      const double ratio = plan().ratios[i];
      const sim::SimulationResult* found = result(trace, policy, i);
      if (found == nullptr) continue;
      if (found->is_ok()) {
        const double value = panel.figure(found->last());
        points.push_back(frame.at(ratio, value));
        if (value > frame.most()) {
          draw_beyond(row_at(frame, ratio, policy), value, policy);
          continue;
        }
        svg_.add_dot(points.back(), 3.5, class_of('f', policy),
                     plan().policies[policy] + " at " + format_ratio(ratio) + ": " +
                         format_decimal(value, 2) + " " + panel.unit);
      } else {
        draw_cross(row_at(frame, ratio, policy), policy);
      }
    }
    if (points.size() > 1) svg_.add_polyline(points, class_of('s', policy));
  }

  // For what has no place in the panel: a row for each policy, beneath its top.
  static Point row_at(const Frame& frame, double ratio, std::size_t policy) {
    return {frame.x_of(ratio), frame.box().y + 10 + 11 * static_cast<double>(policy)};
  }

  void draw_beyond(Point at, double value, std::size_t policy) {
    const std::string x = svg_number(at.x - 4);
    svg_.add_path("M" + x + " " + svg_number(at.y + 3) + "h8l-4 -7z", class_of('f', policy));
    svg_.add_text({at.x + 6, at.y + 3}, format_decimal(value, 0), "beyond");
  }

  void draw_cross(Point at, std::size_t policy) {
    const std::string x = svg_number(at.x - 3.5);
    svg_.add_path("M" + x + " " + svg_number(at.y - 3.5) + "l7 7M" + x + " " +
                      svg_number(at.y + 3.5) + "l7 -7",
                  "cross " + class_of('s', policy));
  }

  const Sweep& sweep_;
  const std::vector<Reference>& references_;
  double height_;
  Svg svg_;
  std::vector<std::size_t> by_ratio_;  // numbers of the ratios, the smallest first
};

}  // namespace

Picture draw_sweep(const Sweep& sweep, const std::vector<Reference>& references) {
  return SweepChart(sweep, references).draw();
}

}  // namespace coop::cli
