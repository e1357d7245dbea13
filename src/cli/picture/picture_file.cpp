#include "cli/picture/picture_file.hpp"

#include <filesystem>

#include "cli/picture/png.hpp"
#include "cli/picture/svg.hpp"
#include "core/base/errors.hpp"
#include "sim/trace/text_file.hpp"

namespace coop::cli {
namespace {

constexpr std::string_view kPageStyle = R"(
body { margin: 2em auto; max-width: 1240px; padding: 0 1em; background: #ffffff; color: #1c2430;
       font: 15px system-ui, sans-serif; }
svg { max-width: 100%; height: auto; }
pre { font: 13px ui-monospace, monospace; overflow-x: auto; }
@media (prefers-color-scheme: dark) { body { background: #14181f; color: #e4e8ee; } }
)";

std::string html_page(const Picture& picture, std::string_view figures) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width\"/>\n"
         "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>" +
         xml_text(picture.title) + "</title>\n<style>" + std::string(kPageStyle) +
         "</style>\n</head>\n<body>\n" + picture.svg + "<pre>" + xml_text(figures) +
         "</pre>\n</body>\n</html>\n";
}

}  // namespace

// The dark colours come after the light ones, and override them where the reader prefers dark.
const std::string_view kCommonStyle = R"(
text { font: 13px system-ui, sans-serif; fill: #1c2430; }
.title { font-size: 20px; font-weight: 600; }
.heading { font-size: 15px; font-weight: 600; }
.faint { fill: #5a6675; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.ground { fill: #ffffff; }
.frame { fill: none; stroke: #9aa5b1; }
.grid { stroke: #dde2e8; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e8ee; }
  .faint { fill: #9aa7b5; }
  .ground { fill: #14181f; }
  .frame { stroke: #5b6673; }
  .grid { stroke: #2b323c; }
}
)";

void check_picture_path(const std::string& path) {
  const auto ending = std::filesystem::path(path).extension();
  if (ending != ".svg" && ending != ".html" && ending != ".png") {
    throw InvalidArgument(path + ": pictures are written as .svg, .html or .png");
  }
  if (ending == ".png" && !can_write_png()) {
    throw InvalidArgument(path +
                          ": PNG needs the program rsvg-convert, which is not there (Debian:"
                          " librsvg2-bin); .svg and .html need nothing");
  }
}

void write_picture(const std::string& path, const Picture& picture, std::string_view figures) {
  const auto ending = std::filesystem::path(path).extension();
  if (ending == ".png") return write_png(path, picture.svg, picture.height);
  sim::write_text_file(path, ending == ".html" ? html_page(picture, figures) : picture.svg);
}

}  // namespace coop::cli
