#include "cli/picture/svg.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "cli/text/joined.hpp"
#include "cli/text/utf8.hpp"

namespace coop::cli {
namespace {

std::string attribute(std::string_view name, double value) {
  return joined({" ", name, "=\"", svg_number(value), "\""});
}

std::string position(Point point) { return attribute("x", point.x) + attribute("y", point.y); }

}  // namespace

std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : mended_utf8(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // XML has no way to write most control characters.
        result += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return result;
}

std::string svg_number(double number) {
  const double rounded = std::round(number * 100) / 100;
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                 rounded == 0 ? 0.0 : rounded, std::chars_format::fixed)
                       .ptr;
  return {digits.data(), end};
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : width_(width),
      height_(height),
      title_(xml_text(title)),
      description_(xml_text(description)) {}

void Svg::add_element(std::string_view name, std::string_view attributes,
                      std::string_view css_class, std::string_view tip) {
  body_ += joined({"<", name, " class=\"", css_class, "\"", attributes});
  body_ += tip.empty() ? "/>\n" : joined({"><title>", xml_text(tip), "</title></", name, ">\n"});
}

void Svg::add_box(const Box& box, std::string_view css_class, std::string_view tip) {
  const std::string attributes =
      position({box.x, box.y}) + attribute("width", box.width) + attribute("height", box.height);
  add_element("rect", attributes, css_class, tip);
}

void Svg::add_line(Point from, Point to, std::string_view css_class) {
  add_element("line",
              attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) +
                  attribute("y2", to.y),
              css_class, {});
}

void Svg::add_polyline(std::span<const Point> points, std::string_view css_class) {
  std::string list;
  for (const Point& point : points) {
    list += joined({list.empty() ? "" : " ", svg_number(point.x), ",", svg_number(point.y)});
  }
  add_element("polyline", joined({" points=\"", list, "\""}), css_class, {});
}

void Svg::add_dot(Point at, double radius, std::string_view css_class, std::string_view tip) {
  add_element("circle", attribute("cx", at.x) + attribute("cy", at.y) + attribute("r", radius),
              css_class, tip);
}

void Svg::add_text(Point at, std::string_view text, std::string_view css_class) {
  body_ +=
      joined({"<text class=\"", css_class, "\"", position(at), ">", xml_text(text), "</text>\n"});
}

void Svg::add_upright_text(Point at, std::string_view text, std::string_view css_class) {
  const std::string turn =
      joined({" transform=\"rotate(-90 ", svg_number(at.x), " ", svg_number(at.y), ")\""});
  body_ += joined(
      {"<text class=\"", css_class, "\"", position(at), turn, ">", xml_text(text), "</text>\n"});
}

void Svg::add_path(std::string_view path, std::string_view css_class) {
  if (!path.empty()) add_element("path", joined({" d=\"", path, "\""}), css_class, {});
}

std::string Svg::finish() const {
  const std::string width = svg_number(width_);
  const std::string height = svg_number(height_);
  return joined({R"(<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 )", width, " ",
                 height, "\" width=\"", width, "\" height=\"", height, "\">\n<title>", title_,
                 "</title>\n<desc>", description_, "</desc>\n<style>\n", style_, "</style>\n",
                 body_, "</svg>\n"});
}

}  // namespace coop::cli
