#pragma once

// One line of a DTR log: a JSON object, whose fields are nearly all strings.

#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "core/base/bytes.hpp"
#include "sim/trace/lines.hpp"

namespace coop::sim {

// What it hands out is good until the next line is parsed.
class DtrInstruction {
 public:
  explicit DtrInstruction(simdjson::dom::object object) : object_(object) {}

  [[nodiscard]] std::string_view text(const char* field) const {
    std::string_view value;
    if (element(field).get(value) != simdjson::SUCCESS) {
      throw TraceError(std::string("field ") + field + " is not a string");
    }
    return value;
  }
  [[nodiscard]] simdjson::dom::array list(const char* field) const {
    simdjson::dom::array value;
    if (element(field).get(value) != simdjson::SUCCESS) {
      throw TraceError(std::string("field ") + field + " is not a list");
    }
    return value;
  }
  [[nodiscard]] std::vector<std::string_view> texts(const char* field) const {
    std::vector<std::string_view> values;
    for (const simdjson::dom::element item : list(field)) {
      std::string_view value;
      if (item.get(value) != simdjson::SUCCESS) {
        throw TraceError(std::string("field ") + field + " has something else than strings in it");
      }
      values.push_back(value);
    }
    return values;
  }
  [[nodiscard]] double time() const { return parse_decimal(text("TIME"), "TIME"); }
  // DTR writes sizes as whole numbers, but its own reader takes them through floating point.
  [[nodiscard]] Bytes memory() const { return parse_whole(text("MEMORY"), "MEMORY"); }

 private:
  [[nodiscard]] simdjson::dom::element element(const char* field) const {
    simdjson::dom::element value;
    if (object_.at_key(field).get(value) != simdjson::SUCCESS) {
      throw TraceError(std::string("field ") + field + " is missing");
    }
    return value;
  }

  simdjson::dom::object object_;
};

// Makes instructions of lines, behind which there must be SIMDJSON_PADDING bytes of memory.
class DtrInstructionParser {
 public:
  DtrInstruction parse(std::string_view line) {
    simdjson::dom::object object;
    const auto status = parser_.parse(line.data(), line.size(), false).get(object);
    if (status != simdjson::SUCCESS) {
      throw TraceError("not a JSON object: " + std::string(simdjson::error_message(status)));
    }
    return DtrInstruction(object);
  }

 private:
  simdjson::dom::parser parser_;
};

}  // namespace coop::sim
