#pragma once

// Traces in our own format, a line an event: docs/trace-format.md.

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/trace/trace.hpp"

namespace coop::sim {

// Plain or gzipped. Throws TraceError, with file and line where there is one.
Trace read_trace(const std::filesystem::path& path);
// Gzipped where the name ends in ".gz".
void write_trace(const Trace& trace, const std::filesystem::path& path);

// The same without files; `file` is what errors call it.
Trace parse_trace(std::string_view text, const std::string& file);
// Exact: parse_trace gives the same trace back.
std::string format_trace(const Trace& trace);

}  // namespace coop::sim
