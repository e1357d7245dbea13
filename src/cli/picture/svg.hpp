#pragma once

// Writes SVG: shapes of classes, whose looks are in one style sheet. Colours are in the style sheet and
// nowhere else, so that a picture is readable on light and on dark ground.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace coop::cli {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

// Text as it may stand between tags and in attributes: escaped, and without what XML does not allow.
std::string xml_text(std::string_view text);
// Two digits after the point at most: a hundredth of a pixel.
std::string svg_number(double number);

class Svg {
 public:
  // Title and description are for whoever cannot see it, and for whoever points at it.
  Svg(double width, double height, std::string_view title, std::string_view description);

  void add_style(std::string_view css) { style_ += css; }
  // `tip`: shown to whoever points at it.
  void add_box(const Box& box, std::string_view css_class, std::string_view tip = {});
  void add_line(Point from, Point to, std::string_view css_class);
  void add_polyline(std::span<const Point> points, std::string_view css_class);
  void add_dot(Point at, double radius, std::string_view css_class, std::string_view tip = {});
  void add_text(Point at, std::string_view text, std::string_view css_class);
  // Read upwards.
  void add_upright_text(Point at, std::string_view text, std::string_view css_class);
  // Any shape, in the language of SVG's paths; many small ones take little room this way.
  void add_path(std::string_view path, std::string_view css_class);

  [[nodiscard]] std::string finish() const;

 private:
  void add_element(std::string_view name, std::string_view attributes, std::string_view css_class,
                   std::string_view tip);

  double width_;
  double height_;
  std::string title_;
  std::string description_;
  std::string style_;
  std::string body_;
};

}  // namespace coop::cli
