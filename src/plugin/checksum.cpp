#include "plugin/checksum.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace coop::plugin {
namespace {

constexpr std::size_t kPiece = 64;  // a line of the cache
constexpr std::size_t kSomePieces = 256;
constexpr std::size_t kFewPieces = 16;

// Several sums side by side: the processor need not wait for one multiplication to begin the next.
class Sum {
 public:
  void add_piece(const std::byte* data) noexcept {
    for (std::size_t word = 0; word < kPiece / sizeof(std::uint64_t); word += lanes_.size()) {
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        std::uint64_t value = 0;
        std::memcpy(&value, data + (word + lane) * sizeof value, sizeof value);
        lanes_[lane] = mix(lanes_[lane], value);
      }
    }
  }
  void add_rest(const std::byte* data, std::size_t bytes) noexcept {
    std::array<std::byte, kPiece> piece{};
    std::memcpy(piece.data(), data, bytes);
    add_piece(piece.data());
  }
  [[nodiscard]] std::uint64_t result() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t lane : lanes_) all = mix(all, lane);
    return std::max<std::uint64_t>(all, 1);
  }

 private:
  // An odd factor loses nothing; the shift brings the upper bits, which it moves most, down again.
  static std::uint64_t mix(std::uint64_t sum, std::uint64_t value) noexcept {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;  // the golden ratio's digits
    constexpr unsigned kShift = 29;
    sum = (sum ^ value) * kFactor;
    return sum ^ (sum >> kShift);
  }
  std::array<std::uint64_t, 4> lanes_ = {1, 2, 3, 4};
};

}  // namespace

std::uint64_t checksum(const void* data, std::size_t bytes, Sample sample) noexcept {
  const auto* at = static_cast<const std::byte*>(data);
  const std::size_t whole = bytes / kPiece;
  Sum sum;
  const std::size_t pieces = sample == Sample::kSome ? kSomePieces : kFewPieces;
  if (sample == Sample::kAll || whole <= pieces) {
    for (std::size_t i = 0; i < whole; ++i) sum.add_piece(at + i * kPiece);
  } else {
    for (std::size_t i = 0; i < pieces; ++i) {
      sum.add_piece(at + i * (whole - 1) / (pieces - 1) * kPiece);
    }
  }
  sum.add_rest(at + whole * kPiece, bytes % kPiece);
  return sum.result();
}

}  // namespace coop::plugin
