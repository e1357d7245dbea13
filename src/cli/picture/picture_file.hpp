#pragma once

// Pictures as files: SVG as it is, a page of HTML that needs nothing else, or PNG.

#include <string>
#include <string_view>

namespace coop::cli {

struct Picture {
  std::string title;
  std::string svg;
  double height = 0;  // of the SVG
};

// Throws InvalidArgument unless the name ends in .svg, .html or .png, and this machine can draw that. Call it
// before anything takes time.
void check_picture_path(const std::string& path);

// A page shows `figures`, plain text, beneath the picture. Throws sim::TraceError, naming the file.
void write_picture(const std::string& path, const Picture& picture, std::string_view figures);

// Of every picture: ground, text, lines.
extern const std::string_view kCommonStyle;

}  // namespace coop::cli
