#pragma once

// What TraceBuilder checks sizes and numbers against.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "sim/trace/trace.hpp"
#include "sim/trace/trace_error.hpp"

namespace coop::sim {

// Numbers have 32 bits; the last one is nobody's.
inline constexpr std::size_t kMostThings = std::numeric_limits<std::uint32_t>::max();
inline constexpr const char* kTooLong = "the trace is too long: numbers have 32 bits";
// Of everything that a trace ever allocates: no sum of sizes can overflow.
inline constexpr Bytes kMostTotalBytes = Bytes{1} << 62U;

inline std::string describe(StorageNumber storage) {
  return "storage " + std::to_string(index_of(storage));
}

// Room for `more`, growing as push_back does: what follows cannot fail half-way.
template <typename T>
void make_room(std::vector<T>& vector, std::size_t more) {
  const std::size_t needed = vector.size() + more;
  if (needed > kMostThings) throw TraceError(kTooLong);
  if (vector.capacity() < needed) vector.reserve(std::max(needed, 2 * vector.size()));
}

inline void check_bytes(Bytes bytes, const char* of_what) {
  if (bytes > kMostBytes) {
    throw TraceError(std::string(of_what) + " of " + std::to_string(bytes) +
                     " bytes is larger than any memory (at most " + std::to_string(kMostBytes) +
                     ")");
  }
}

}  // namespace coop::sim
