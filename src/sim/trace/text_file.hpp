#pragma once

// Whole text files, plain or gzipped.

#include <filesystem>
#include <string>
#include <string_view>

namespace coop::sim {

// What is in the file. Gzip is known by its first bytes, whatever the file is called. Throws
// TraceError, naming the file: not there, a directory, unreadable, broken or cut-off gzip.
std::string read_text_file(const std::filesystem::path& path);

// Gzipped where the name ends in ".gz". Throws TraceError.
void write_text_file(const std::filesystem::path& path, std::string_view text);

// The same without files.
[[nodiscard]] bool is_gzip(std::string_view data);
std::string gunzip(std::string_view data);
std::string gzip(std::string_view text);

}  // namespace coop::sim
