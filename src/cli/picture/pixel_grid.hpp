#pragma once

// What is too small to be drawn by itself, gathered: cells of a few pixels remember how much of them each
// kind covers, and are drawn in the colour of the kind that covers most.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/picture/svg.hpp"

namespace coop::cli {

class PixelGrid {
 public:
  static constexpr std::size_t kKinds = 4;

  // The area is cut into cells of `cell` by `cell` pixels.
  PixelGrid(const Box& area, double cell);

  // Part of a box; what lies outside the area does not count.
  void cover(const Box& box, std::size_t kind);

  // The cells that this kind has, joined to boxes where they touch: a path of SVG.
  [[nodiscard]] std::string path_of(std::size_t kind) const;

 private:
  static constexpr std::size_t kNone = kKinds;
  [[nodiscard]] std::size_t winner(std::size_t column, std::size_t row) const;

  Box area_;
  double cell_;
  std::size_t columns_;
  std::size_t rows_;
  std::vector<std::array<float, kKinds>> covered_;  // square pixels, by row and column
};

// A box as part of a path.
std::string box_path(const Box& box);

}  // namespace coop::cli
