#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace coop {

using Bytes = std::uint64_t;

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return n; }
constexpr Bytes operator""_KiB(unsigned long long n) { return n << 10U; }
constexpr Bytes operator""_MiB(unsigned long long n) { return n << 20U; }
constexpr Bytes operator""_GiB(unsigned long long n) { return n << 30U; }
}  // namespace literals

// Reads "8GiB", "1.5 GiB", "512MB", "4096" or "4096B". KB, MB, GB, TB are powers of 1000, KiB, MiB,
// GiB, TiB powers of 1024. Strict: anything else throws InvalidArgument saying what was wrong.
// A fraction is allowed where the result is a whole number of bytes after rounding down.
Bytes parse_bytes(std::string_view text);

// The shortest form a person reads at a glance: "8 GiB", "1.5 MiB", "640 B".
std::string format_bytes(Bytes bytes);

}  // namespace coop
