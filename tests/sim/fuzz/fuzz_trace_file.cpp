// Whatever the file: a trace that reads back as itself, or a TraceError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/trace/gzip.hpp"
#include "sim/trace/trace_error.hpp"
#include "sim/trace/trace_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace coop::sim;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    const Trace trace = parse_trace(is_gzip(file) ? gunzip(file) : std::string(file), "fuzz");
    if (parse_trace(format_trace(trace), "again") != trace) std::abort();
  } catch (const TraceError&) {
    return 0;
  }
  return 0;
}
