#include "cli/text/format.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/base/errors.hpp"

namespace coop::cli {

std::string format_decimal(double number, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  return text.data();
}

std::string format_percent(double fraction) { return format_decimal(100 * fraction, 1) + '%'; }

std::string format_time(double ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits{{{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}}};
  const auto* const unit = std::find_if(kUnits.begin(), kUnits.end() - 1,
                                        [&](const Unit& each) { return ns >= each.ns; });
  return format_decimal(ns / unit->ns, unit->ns > 1 ? 1 : 0) + unit->name;
}

std::string format_count(std::size_t count, std::string_view of_what) {
  return std::to_string(count) + " " + std::string(of_what) +
         (count == 1                ? ""
          : of_what.ends_with("ch") ? "es"
                                    : "s");
}

std::string format_ratio(double ratio) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), ratio).ptr;
  return {digits.data(), end};
}

std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns) {
  std::string result(indent);
  std::size_t column = indent.size();
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!is_first && column + 1 + word.size() > columns) {
      result += '\n';
      result += indent;
      column = indent.size();
      is_first = true;
    }
    if (!is_first) result += ' ';
    result += word;
    column += word.size() + (is_first ? 0 : 1);
    is_first = false;
  }
  return result + '\n';
}

void print(std::string_view text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!is_written || std::fflush(stdout) != 0) {
    throw Error(std::string("the output could not be written: ") + std::strerror(errno));
  }
}

}  // namespace coop::cli
