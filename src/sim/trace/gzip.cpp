#include "sim/trace/gzip.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include <zlib.h>

#include "sim/trace/trace_error.hpp"

namespace coop::sim {
namespace {

constexpr int kGzipFormat = 15 + 16;  // zlib: the largest window, with gzip's header

// zlib counts in 32 bits: long input is handed over in parts.
std::string_view part_of(std::string_view data) {
  return data.substr(0, std::numeric_limits<uInt>::max());
}

void set_input(z_stream& stream, std::string_view data) {
  // zlib takes input that it does not change without const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
}

using Buffer = std::array<char, 65536>;

void set_output(z_stream& stream, Buffer& buffer) {
  stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
  stream.avail_out = static_cast<uInt>(buffer.size());
}

std::string_view written(const z_stream& stream, const Buffer& buffer) {
  return {buffer.data(), buffer.size() - stream.avail_out};
}

}  // namespace

bool is_gzip(std::string_view data) { return data.starts_with("\x1f\x8b"); }

struct Gunzip::Stream {
  z_stream zlib{};
  bool is_at_end = false;  // of one gzip file; a file may be several, one after the other
  Buffer buffer{};
};

Gunzip::Gunzip() : stream_(std::make_unique<Stream>()) {
  if (inflateInit2(&stream_->zlib, kGzipFormat) != Z_OK) throw std::bad_alloc();
}

Gunzip::~Gunzip() { inflateEnd(&stream_->zlib); }

bool Gunzip::add(std::string_view piece, std::string& text, std::size_t most_bytes) {
  z_stream& zlib = stream_->zlib;
  while (!piece.empty()) {
    set_input(zlib, part_of(piece));
    piece.remove_prefix(zlib.avail_in);
    bool has_more = true;
    while (has_more) {
      if (std::exchange(stream_->is_at_end, false)) inflateReset(&zlib);
      set_output(zlib, stream_->buffer);
      const int status = inflate(&zlib, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      // Z_BUF_ERROR: it needs the next piece.
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        throw TraceError(std::string("broken gzip: ") +
                         (zlib.msg == nullptr ? "not in the format" : zlib.msg));
      }
      const std::string_view more = written(zlib, stream_->buffer);
      if (more.size() > most_bytes - text.size()) return false;
      text += more;
      stream_->is_at_end = status == Z_STREAM_END;
      has_more = zlib.avail_in > 0 || (zlib.avail_out == 0 && !stream_->is_at_end);
    }
  }
  return true;
}

void Gunzip::finish() const {
  if (!stream_->is_at_end) throw TraceError("broken gzip: the file ends too early");
}

std::string gunzip(std::string_view data) {
  Gunzip file;
  std::string text;
  if (!file.add(data, text, text.max_size())) throw std::bad_alloc();
  file.finish();
  return text;
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
  Buffer buffer{};
  std::string data;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      set_input(stream, part_of(text));
      text.remove_prefix(stream.avail_in);
    }
    set_output(stream, buffer);
    status = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    data += written(stream, buffer);
  }
  return data;
}

}  // namespace coop::sim
