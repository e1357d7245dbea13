#pragma once

// SVG turned into PNG by rsvg-convert, librsvg's own program: it knows fonts and draws our pictures as a
// browser does. It is started when a PNG is wanted, so that nobody else needs it, neither to build nor to run.

#include <string>
#include <string_view>

namespace coop::cli {

// Whether the program is there.
bool can_write_png();

// Twice as large as the SVG says, for dense screens, or as large as a PNG can be. Throws sim::TraceError,
// naming the file, and leaves no half of one.
void write_png(const std::string& path, std::string_view svg, double svg_height);

}  // namespace coop::cli
