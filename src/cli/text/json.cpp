#include "cli/text/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cli/text/utf8.hpp"

namespace coop::cli {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : mended_utf8(text)) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      result += escape.data();
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace

void JsonWriter::key(std::string_view name) {
  begin_value();
  text_ += quoted(name) + ": ";
  is_after_key_ = true;
}

void JsonWriter::value(std::string_view text) { scalar(quoted(text)); }

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return scalar("null");
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  scalar({digits.data(), end});
}

void JsonWriter::open(char bracket) {
  begin_value();
  text_ += bracket;
  has_elements_.push_back(false);
}

void JsonWriter::close(char bracket) {
  const bool had_elements = has_elements_.back();
  has_elements_.pop_back();
  if (had_elements) begin_line();
  text_ += bracket;
}

void JsonWriter::scalar(std::string_view text) {
  begin_value();
  text_ += text;
}

void JsonWriter::begin_value() {
  if (std::exchange(is_after_key_, false) || has_elements_.empty()) return;
  if (has_elements_.back()) text_ += ',';
  has_elements_.back() = true;
  begin_line();
}

void JsonWriter::begin_line() {
  text_ += '\n';
  text_.append(2 * has_elements_.size(), ' ');
}

std::string JsonWriter::finish() { return std::exchange(text_, {}) + '\n'; }

}  // namespace coop::cli
