#pragma once

// Pictures as files: SVG as it is, or a page of HTML that needs nothing else.

#include <string>
#include <string_view>

namespace coop::cli {

struct Picture {
  std::string title;
  std::string svg;
};

// Throws InvalidArgument unless the name ends in .svg or .html. Call it before anything takes time.
void check_picture_path(const std::string& path);

// A page shows `figures`, plain text, beneath the picture. Throws sim::TraceError, naming the file.
void write_picture(const std::string& path, const Picture& picture, std::string_view figures);

// Of every picture: ground, text, lines.
extern const std::string_view kCommonStyle;

}  // namespace coop::cli
