#pragma once

// Writes JSON: indented, keys in the order in which they come, numbers so that reading them gives the
// same number back. Text that is not UTF-8 is mended: what is written can always be read.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coop::cli {

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }

  // Of the value that comes next.
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(double number);  // null if it is none
  void value(bool flag) { scalar(flag ? "true" : "false"); }
  void value(std::unsigned_integral auto number) { scalar(std::to_string(number)); }
  void value(std::nullopt_t) { scalar("null"); }
  template <typename Value>
  void value(const std::optional<Value>& maybe) {
    if (maybe) {
      value(*maybe);
    } else {
      value(std::nullopt);
    }
  }

  template <typename Value>
  void field(std::string_view name, const Value& content) {
    key(name);
    value(content);
  }

  // An array with an object for each element, whose fields `write(element)` writes.
  template <typename Elements, typename Write>
  void objects(std::string_view name, const Elements& elements, Write&& write) {
    key(name);
    begin_array();
    for (const auto& element : elements) {
      begin_object();
      write(element);
      end_object();
    }
    end_array();
  }

  // With everything that was opened closed.
  std::string finish();

 private:
  void open(char bracket);
  void close(char bracket);
  void scalar(std::string_view text);
  void begin_value();
  void begin_line();

  std::string text_;
  std::vector<bool> has_elements_;  // of the objects and arrays that are open
  bool is_after_key_ = false;
};

}  // namespace coop::cli
