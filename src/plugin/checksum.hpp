#pragma once

// Whether contents that were made again are those that went: a sum of their bytes, taken when they are
// evicted, compared when they come back.

#include <cstddef>
#include <cstdint>

namespace coop::plugin {

enum class Sample : std::uint8_t { kAll, kSome };

// Of some: all bytes of what is small, else a few hundred pieces from the first to the last. Never 0.
std::uint64_t checksum(const void* data, std::size_t bytes, Sample sample) noexcept;

}  // namespace coop::plugin
