#pragma once

// Reading text line by line: whatever is wrong is reported with file and line.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "sim/trace/trace_error.hpp"

namespace coop::sim {

// Calls read(line) for every line of `text`, in order, and puts "file:line: " before whatever
// TraceError it throws. A text whose last line has no line break was cut off there.
template <typename Read>
void for_each_line(std::string_view text, const std::string& file, Read&& read) {
  std::size_t number = 1;
  try {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos) throw TraceError("the file ends within this line");
      read(text.substr(0, end));
      text.remove_prefix(end + 1);
      ++number;
    }
  } catch (const TraceError& error) {
    throw TraceError(file + ":" + std::to_string(number) + ": " + error.what());
  }
}

// As much of foreign text as belongs in a message.
inline std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result = "'";
  for (const char c : text.substr(0, kMost)) {
    const bool is_printable = c >= 0x20 && c < 0x7F;
    result += is_printable ? c : '?';
  }
  return result + (text.size() > kMost ? "...'" : "'");
}

// Digits and nothing else.
template <typename Whole = std::uint64_t>
Whole parse_whole(std::string_view text, const char* what) {
  Whole value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_negative = text.size() > 1 && text[0] == '-';
  if (error == std::errc::result_out_of_range) {
    throw TraceError(std::string(what) + " " + shown(text) + " is too large");
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    throw TraceError(std::string(what) + " " + shown(text) +
                     (is_negative ? " is negative" : " is not a whole number"));
  }
  return value;
}

// A decimal number that is finite and not negative.
inline double parse_decimal(std::string_view text, const char* what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    throw TraceError(std::string(what) + " " + shown(text) + " is too large or too small");
  }
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw TraceError(std::string(what) + " " + shown(text) + " is not a number");
  }
  if (std::signbit(value)) throw TraceError(std::string(what) + " " + shown(text) + " is negative");
  return value;
}

}  // namespace coop::sim
