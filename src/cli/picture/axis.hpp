#pragma once

// Round numbers along an axis.

#include <string>
#include <vector>

#include "core/base/bytes.hpp"

namespace coop::cli {

struct Tick {
  double value = 0;
  std::string label;
};

struct Axis {
  std::vector<Tick> ticks;
  std::string unit;  // of the labels
};

// From 0 to `most`, about as many ticks as wanted.
Axis plain_axis(double most, int wanted, const std::string& unit);
Axis bytes_axis(Bytes most, int wanted);
Axis time_axis(double most_ns, int wanted);

// The least round number that is not smaller: 1, 2, 2.5 or 5 times a power of ten.
double rounded_up(double number);

}  // namespace coop::cli
