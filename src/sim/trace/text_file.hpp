#pragma once

// Whole text files, plain or gzipped.

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "sim/trace/trace_error.hpp"

namespace coop::sim {

// What a file may hold, unpacked, unless the caller says otherwise: a trace of more than ten million
// operators. It keeps a file that is no trace, or a few kilobytes of gzip that unpack to terabytes, from
// filling the memory.
inline constexpr Bytes kMostTextBytes = 1_GiB;

// There is more in a file than may be read. Whoever has an option for it can say how to raise the limit.
class TooMuchText : public TraceError {
 public:
  using TraceError::TraceError;
};

// What is in the file. Gzip is known by its first bytes, whatever the file is called. Read in pieces: no
// more memory is taken than for what may be read. Throws TraceError, naming the file: not there, not a
// file (a directory, a pipe, a device), unreadable, broken or cut-off gzip, and TooMuchText.
std::string read_text_file(const std::filesystem::path& path, Bytes most_bytes = kMostTextBytes);

// Gzipped where the name ends in ".gz". Throws TraceError.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace coop::sim
