#pragma once

#include <string>
#include <string_view>

#include "sim/trace/lines.hpp"
#include "sim/trace/trace_error.hpp"

namespace coop::sim {

// The words of a line, one blank between them.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line), is_done_(line.empty()) {}

  [[nodiscard]] bool is_done() const { return is_done_; }
  std::string_view next(const char* what) {
    if (is_done_) throw TraceError(std::string("the line has no ") + what);
    const std::size_t blank = rest_.find(' ');
    const std::string_view word = rest_.substr(0, blank);
    if (word.empty()) throw TraceError(std::string("a blank too many where ") + what + " belongs");
    is_done_ = blank == std::string_view::npos;
    rest_ = is_done_ ? std::string_view() : rest_.substr(blank + 1);
    return word;
  }
  // Everything that is left.
  std::string_view rest(const char* what) {
    if (rest_.empty()) throw TraceError(std::string("the line has no ") + what);
    is_done_ = true;
    return rest_;
  }
  void end() const {
    if (!is_done_) throw TraceError("more on the line than belongs there: " + shown(rest_));
  }

 private:
  std::string_view rest_;
  bool is_done_;
};

}  // namespace coop::sim
