#pragma once

// Gzip, a piece at a time: what a file unpacks to may be a thousand times as long as the file.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace coop::sim {

// Told by the first two bytes.
[[nodiscard]] bool is_gzip(std::string_view data);

class Gunzip {
 public:
  Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  ~Gunzip();

  // Appends what the next piece of the file holds, and stops at the first byte beyond `most_bytes` of text:
  // whether that was not needed. Throws TraceError for what is not gzip.
  [[nodiscard]] bool add(std::string_view piece, std::string& text, std::size_t most_bytes);
  // There are no more pieces. Throws TraceError if the file was cut off.
  void finish() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

// The same for what is in memory already; there the limit is the machine's.
std::string gunzip(std::string_view data);
std::string gzip(std::string_view text);

}  // namespace coop::sim
