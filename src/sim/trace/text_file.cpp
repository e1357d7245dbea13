#include "sim/trace/text_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <system_error>

#include <zlib.h>

#include "sim/trace/trace_error.hpp"

namespace coop::sim {
namespace {

constexpr int kGzipFormat = 15 + 16;  // zlib: the largest window, with gzip's header
// A kilobyte of gzip can hold a megabyte. More than this is not a trace.
constexpr std::size_t kMostTextBytes = std::size_t{8} << 30U;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw TraceError(path.string() + ": " + why);
}

File open(const std::filesystem::path& path, const char* mode) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(path, "is a directory, not a file");
  File file(std::fopen(path.c_str(), mode));
  if (!file) fail(path, std::strerror(errno));
  return file;
}

// zlib counts in 32 bits: long input is handed over in parts.
uInt part_of(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

// zlib takes input that it does not change without const.
Bytef* input_bytes(std::string_view data, std::size_t at) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + at));
}

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, kGzipFormat) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Appends one member of the file to `text`; how much of `data` that was.
  std::size_t member(std::string_view data, std::string& text) {
    inflateReset(&stream_);
    std::size_t taken = 0;
    for (int status = Z_OK; status != Z_STREAM_END;) {
      const uInt given = part_of(data.size() - taken);
      stream_.next_in = input_bytes(data, taken);
      stream_.avail_in = given;
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      status = inflate(&stream_, Z_NO_FLUSH);
      taken += given - stream_.avail_in;
      text.append(buffer_.data(), buffer_.size() - stream_.avail_out);
      if (text.size() > kMostTextBytes) throw TraceError("more than 8 GiB of text");
      const bool is_stuck = status == Z_BUF_ERROR || (status == Z_OK && taken == data.size() &&
                                                      stream_.avail_out == buffer_.size());
      if (is_stuck) throw TraceError("broken gzip: the file ends too early");
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_STREAM_END) {
        throw TraceError(std::string("broken gzip: ") +
                         (stream_.msg == nullptr ? "not in the format" : stream_.msg));
      }
    }
    return taken;
  }

 private:
  z_stream stream_{};
  std::array<char, 65536> buffer_{};
};

}  // namespace

bool is_gzip(std::string_view data) { return data.substr(0, 2) == "\x1f\x8b"; }

std::string gunzip(std::string_view data) {
  Inflater inflater;
  std::string text;
  // A gzip file may be several, one after the other.
  do {
    data.remove_prefix(inflater.member(data, text));
  } while (!data.empty());
  return text;
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
  std::array<char, 65536> buffer{};
  std::string data;
  std::size_t taken = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    const uInt given = part_of(text.size() - taken);
    const bool is_last = taken + given == text.size();
    stream.next_in = input_bytes(text, taken);
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = deflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH);
    taken += given - stream.avail_in;
    data.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  return data;
}

std::string read_text_file(const std::filesystem::path& path) {
  const File file = open(path, "rb");
  std::string data;
  std::array<char, 65536> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    data.append(buffer.data(), n);
  }
  if (std::ferror(file.get()) != 0) fail(path, std::strerror(errno));
  if (!is_gzip(data)) return data;
  try {
    return gunzip(data);
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
  File file = open(path, "wb");
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  const bool is_closed = std::fclose(file.release()) == 0;
  if (!is_written || !is_closed) fail(path, std::strerror(errno));
}

}  // namespace coop::sim
