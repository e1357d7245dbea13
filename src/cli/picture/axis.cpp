#include "cli/picture/axis.hpp"

#include <array>
#include <cmath>

#include "cli/text/format.hpp"

namespace coop::cli {
namespace {

struct Unit {
  double size;
  const char* name;
};

// The largest that the axis reaches.
template <std::size_t N>
const Unit& fitting(const std::array<Unit, N>& units, double most) {
  for (const Unit& unit : units) {
    if (most >= unit.size) return unit;
  }
  return units.back();
}

Axis axis_in(const Unit& unit, double most, int wanted) {
  Axis axis = plain_axis(most / unit.size, wanted, unit.name);
  for (Tick& tick : axis.ticks) tick.value *= unit.size;
  return axis;
}

}  // namespace

double rounded_up(double number) {
  if (!(number > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(number)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= number * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

Axis plain_axis(double most, int wanted, const std::string& unit) {
  const double step = rounded_up(most / wanted);
  // As many digits as the step has, so that all labels look alike.
  int digits = 0;
  for (double scaled = step; digits < 6 && std::abs(scaled - std::round(scaled)) > 1e-6;
       scaled *= 10) {
    ++digits;
  }
  Axis axis{.unit = unit};
  for (int i = 0; i * step <= most * (1 + 1e-9); ++i) {
    axis.ticks.push_back({.value = i * step, .label = format_decimal(i * step, digits)});
  }
  return axis;
}

Axis bytes_axis(Bytes most, int wanted) {
  constexpr std::array<Unit, 4> kUnits{
      {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "bytes"}}};
  const auto bytes = static_cast<double>(most);
  return axis_in(fitting(kUnits, bytes), bytes, wanted);
}

Axis time_axis(double most_ns, int wanted) {
  constexpr std::array<Unit, 4> kUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  return axis_in(fitting(kUnits, most_ns), most_ns, wanted);
}

}  // namespace coop::cli
