#include "cli/picture/pixel_grid.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cli/text/joined.hpp"

namespace coop::cli {
namespace {

// A cell of which less is covered counts as free.
constexpr double kLeastCovered = 0.25;

// How much of [begin, end) lies in the cell with this number.
double overlap(double begin, double end, std::size_t number, double cell) {
  const double cell_begin = static_cast<double>(number) * cell;
  return std::max(0.0, std::min(end, cell_begin + cell) - std::max(begin, cell_begin));
}

std::size_t cells(double length, double cell) {
  return static_cast<std::size_t>(std::max(1.0, std::ceil(length / cell)));
}

}  // namespace

std::string box_path(const Box& box) {
  return joined({"M", svg_number(box.x), " ", svg_number(box.y), "h", svg_number(box.width), "v",
                 svg_number(box.height), "h", svg_number(-box.width), "z"});
}

PixelGrid::PixelGrid(const Box& area, double cell)
    : area_(area),
      cell_(cell),
      columns_(cells(area.width, cell)),
      rows_(cells(area.height, cell)),
      covered_(columns_ * rows_) {}

void PixelGrid::cover(const Box& box, std::size_t kind) {
  const double left = std::max(0.0, box.x - area_.x);
  const double right = std::min(area_.width, box.x + box.width - area_.x);
  const double top = std::max(0.0, box.y - area_.y);
  const double bottom = std::min(area_.height, box.y + box.height - area_.y);
  if (left >= right || top >= bottom) return;
  const auto first_column = static_cast<std::size_t>(left / cell_);
  const auto first_row = static_cast<std::size_t>(top / cell_);
  for (std::size_t row = first_row; row < rows_; ++row) {
    const double height = overlap(top, bottom, row, cell_);
    if (height <= 0) break;
    for (std::size_t column = first_column; column < columns_; ++column) {
      const double width = overlap(left, right, column, cell_);
      if (width <= 0) break;
      covered_[row * columns_ + column][kind] += static_cast<float>(width * height);
    }
  }
}

std::size_t PixelGrid::winner(std::size_t column, std::size_t row) const {
  const auto& kinds = covered_[row * columns_ + column];
  double sum = 0;
  for (const float part : kinds) sum += part;
  if (sum < kLeastCovered * cell_ * cell_) return kNone;
  return static_cast<std::size_t>(std::max_element(kinds.begin(), kinds.end()) - kinds.begin());
}

std::string PixelGrid::path_of(std::size_t kind) const {
  using Run = std::pair<std::size_t, std::size_t>;  // [first, last) columns
  std::map<Run, std::size_t> open;                  // runs that may go on downwards, and their top
  std::string path;
  const auto draw = [&](const Run& run, std::size_t top, std::size_t bottom) {
    path += box_path({.x = area_.x + static_cast<double>(run.first) * cell_,
                      .y = area_.y + static_cast<double>(top) * cell_,
                      .width = static_cast<double>(run.second - run.first) * cell_,
                      .height = static_cast<double>(bottom - top) * cell_});
  };
  for (std::size_t row = 0; row <= rows_; ++row) {
    std::map<Run, std::size_t> next;
    for (std::size_t column = 0; row < rows_ && column < columns_; ++column) {
      if (winner(column, row) != kind) continue;
      const std::size_t first = column;
      while (column < columns_ && winner(column, row) == kind) ++column;
      const Run run{first, column};
      const auto above = open.find(run);
      next[run] = above == open.end() ? row : above->second;
    }
    for (const auto& [run, top] : open) {
      if (!next.contains(run)) draw(run, top, row);
    }
    open = std::move(next);
  }
  return path;
}

}  // namespace coop::cli
