#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coop::cli {

// Columns as wide as they need to be: the first to the left, numbers to the right.
class Table {
 public:
  // One cell for each column; a row may end early.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line of its own, which does not widen any column.
  void add_heading(std::string text) {
    rows_.push_back({std::move(text)});
    headings_.push_back(rows_.size() - 1);
  }
  // The last column is prose: to the left as well.
  void set_last_left() { is_last_left_ = true; }

  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> headings_;
  bool is_last_left_ = false;
};

}  // namespace coop::cli
