#pragma once

// Logs of the DTR prototype's simulator (github.com/uwsampl/dtr-prototype), one JSON object a line.
//
//     CONSTANT x + MEMORY x        a source
//     CALL + MEMORY, ALIAS each    an operator; a result that aliases an argument shares its storage
//     MUTATE                       an operator that changes some of its arguments
//     COPY, COPY_FROM, RELEASE     names come and go; a storage goes with the last of its names
//     ANNOTATE START               whatever came before does not count
//     ANNOTATE                     anything else is a remark
//
// What still has a name at the end is not released in the trace either: it is what the program wanted.

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/trace/trace.hpp"

namespace coop::sim {

enum class Mutation : std::uint8_t {
  kCopies,   // as DTR has it: the new contents are a new storage, the old one loses this name
  kInPlace,  // the storage is changed where it is, for all its names
};

// Plain or gzipped. Throws TraceError, with file and line where there is one.
Trace read_dtr_log(const std::filesystem::path& path, Mutation mutation);

// The same without files; `file` is what errors call it.
Trace parse_dtr_log(std::string text, const std::string& file, Mutation mutation);

}  // namespace coop::sim
