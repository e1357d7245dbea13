#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>

namespace coop::sim {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
// Closes itself. Whoever must know whether that went well releases it, and closes it.
using File = std::unique_ptr<std::FILE, CloseFile>;

// Throws TraceError, naming the file.
File open_file(const std::filesystem::path& path, const char* mode);

}  // namespace coop::sim
