#include "cli/sweep/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/trace/lines.hpp"
#include "sim/trace/text_file.hpp"

namespace coop::cli {
namespace {

constexpr std::string_view kHeader = "reference,trace,ratio,time";
constexpr std::string_view kDidNotFit = "none";
constexpr std::size_t kFields = 4;

std::array<std::string_view, kFields> split(std::string_view line) {
  if (std::count(line.begin(), line.end(), ',') != kFields - 1) {
    throw sim::TraceError("four fields are wanted: " + std::string(kHeader));
  }
  std::array<std::string_view, kFields> fields;
  for (std::string_view& field : fields) {
    field = line.substr(0, line.find(','));
    line.remove_prefix(std::min(field.size() + 1, line.size()));
  }
  return fields;
}

ReferenceFigure parse_figure(std::string_view ratio, std::string_view time) {
  ReferenceFigure figure{.ratio = sim::parse_decimal(ratio, "the ratio")};
  if (time != kDidNotFit) figure.overhead = sim::parse_decimal(time, "the time") - 1;
  return figure;
}

}  // namespace

const ReferenceFigure* Reference::at(double ratio) const {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const auto& figure) {
    return std::abs(figure.ratio - ratio) < 1e-9;
  });
  return found == figures.end() ? nullptr : &*found;
}

std::vector<Reference> parse_references(std::string_view text, const std::string& file) {
  std::vector<Reference> references;
  bool has_header = false;
  sim::for_each_line(text, file, [&](std::string_view line) {
    if (line.empty() || line.starts_with('#')) return;
    if (!has_header) {
      if (line != kHeader) {
        throw sim::TraceError("the header is missing: " + std::string(kHeader));
      }
      has_header = true;
      return;
    }
    const auto [name, trace, ratio, time] = split(line);
    const ReferenceFigure figure = parse_figure(ratio, time);
    const bool goes_on =
        !references.empty() && references.back().name == name && references.back().trace == trace;
    if (!goes_on) {
      references.push_back({.name = std::string(name), .trace = std::string(trace)});
    }
    references.back().figures.push_back(figure);
  });
  if (!has_header) throw sim::TraceError(file + ": has no figures");
  return references;
}

std::vector<Reference> read_references(const std::string& path) {
  return parse_references(sim::read_text_file(path), path);
}

std::vector<Reference> references_for(const std::vector<Reference>& all, std::string_view trace) {
  std::vector<Reference> found;
  for (const Reference& reference : all) {
    const bool is_beginning = trace.starts_with(reference.trace);
    const bool ends_there = trace.size() == reference.trace.size();
    if (is_beginning && (ends_there || trace[reference.trace.size()] == '-')) {
      found.push_back(reference);
    }
  }
  return found;
}

}  // namespace coop::cli
