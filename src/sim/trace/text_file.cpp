#include "sim/trace/text_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "sim/trace/gzip.hpp"
#include "sim/trace/open_file.hpp"

namespace coop::sim {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw TraceError(path.string() + ": " + why);
}

// A pipe that nobody writes to never opens, and a device may never end.
void expect_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_other(status)) {
    fail(path,
         "is a pipe or a device, not a file; write what comes from it to a file, and read that");
  }
}

std::string read_all(std::FILE* file, Bytes most_bytes) {
  std::string text;
  std::optional<Gunzip> unpacked;
  std::array<char, 65536> buffer{};
  bool is_first = true;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file)) {
    const std::string_view piece(buffer.data(), n);
    // The first piece has two bytes at least if the file does.
    if (std::exchange(is_first, false) && is_gzip(piece)) unpacked.emplace();
    bool is_too_much = false;
    if (unpacked) {
      is_too_much = !unpacked->add(piece, text, most_bytes);
    } else {
      is_too_much = piece.size() > most_bytes - text.size();
      if (!is_too_much) text += piece;
    }
    if (is_too_much) throw TooMuchText("more than " + format_bytes(most_bytes) + " of text");
  }
  if (std::ferror(file) != 0) throw TraceError(std::strerror(errno));
  if (unpacked) unpacked->finish();
  return text;
}

}  // namespace

File open_file(const std::filesystem::path& path, const char* mode) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(path, "is a directory, not a file");
  File file(std::fopen(path.c_str(), mode));
  if (!file) fail(path, std::strerror(errno));
  return file;
}

std::string read_text_file(const std::filesystem::path& path, Bytes most_bytes) {
  expect_file(path);
  const File file = open_file(path, "rb");
  try {
    return read_all(file.get(), most_bytes);
  } catch (const TooMuchText& error) {
    throw TooMuchText(path.string() + ": " + error.what());
  } catch (const TraceError& error) {
    fail(path, error.what());
  }
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  std::string zipped;
  if (path.extension() == ".gz") {
    zipped = gzip(text);
    text = zipped;
  }
  File file = open_file(path, "wb");
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  const bool is_closed = std::fclose(file.release()) == 0;
  if (!is_written || !is_closed) fail(path, std::strerror(errno));
}

}  // namespace coop::sim
