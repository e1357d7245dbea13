// Whatever the log: a trace that our own format can hold, or a TraceError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/trace/dtr_log.hpp"
#include "sim/trace/gzip.hpp"
#include "sim/trace/trace_error.hpp"
#include "sim/trace/trace_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace coop::sim;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  for (const Mutation mutation : {Mutation::kCopies, Mutation::kInPlace}) {
    try {
      const std::string text = is_gzip(file) ? gunzip(file) : std::string(file);
      const Trace trace = parse_dtr_log(text, "fuzz", mutation);
      if (parse_trace(format_trace(trace), "again") != trace) std::abort();
    } catch (const TraceError&) {
      continue;
    }
  }
  return 0;
}
