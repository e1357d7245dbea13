#pragma once

#include <cstdint>

#include "core/base/bytes.hpp"

namespace coop {

// The pool is cut in grains: every block begins at a multiple of 512 bytes and is a multiple of 512
// bytes long, the alignment CUDA kernels may rely on. Positions and lengths inside the pool are
// kept in grains because 32 bits of them reach a tebibyte, and half the bytes is half the cache.
using Grains = std::int32_t;

inline constexpr Bytes kGrainBytes = 512;
inline constexpr Bytes kMaxPoolBytes = kGrainBytes * ((Bytes{1} << 31U) - 1);

// Rounds up. The caller has made sure that `bytes` is at most kMaxPoolBytes.
constexpr Grains to_grains(Bytes bytes) {
  return static_cast<Grains>((bytes + kGrainBytes - 1) / kGrainBytes);
}
constexpr Bytes to_bytes(Grains grains) { return static_cast<Bytes>(grains) * kGrainBytes; }

// A piece of the pool, [begin, end).
struct Extent {
  Grains begin = 0;
  Grains end = 0;
  [[nodiscard]] constexpr Grains size() const { return end - begin; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

}  // namespace coop
