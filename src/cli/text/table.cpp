#include "cli/text/table.hpp"

#include <algorithm>

#include "cli/text/utf8.hpp"

namespace coop::cli {
namespace {

constexpr std::string_view kBetween = "  ";

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string Table::text() const {
  const auto is_heading = [&](std::size_t row) {
    return std::binary_search(headings_.begin(), headings_.end(), row);
  };
  std::vector<std::size_t> widths;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (is_heading(row)) continue;
    widths.resize(std::max(widths.size(), rows_[row].size()));
    for (std::size_t i = 0; i < rows_[row].size(); ++i) {
      widths[i] = std::max(widths[i], utf8_length(rows_[row][i]));
    }
  }
  std::string text;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (is_heading(row)) {
      text += rows_[row].front() + '\n';
      continue;
    }
    std::string line;
    for (std::size_t i = 0; i < rows_[row].size(); ++i) {
      const std::string& cell = rows_[row][i];
      const std::string padding(widths[i] - utf8_length(cell), ' ');
      const bool is_left = i == 0 || (is_last_left_ && i + 1 == widths.size());
      if (i > 0) line += kBetween;
      line += is_left ? cell + padding : padding + cell;
    }
    text += trimmed(std::move(line)) + '\n';
  }
  return text;
}

}  // namespace coop::cli
