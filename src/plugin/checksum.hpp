#pragma once

// Whether contents are what they were: a sum of their bytes, taken when an operator has made them and
// compared when they are to be evicted; and one taken then, compared when they come back.

#include <cstddef>
#include <cstdint>

namespace coop::plugin {

enum class Sample : std::uint8_t { kAll, kSome, kFew };

// Of some: all bytes of what is small, else a few hundred pieces from the first to the last; of few: sixteen,
// which cost next to nothing. Never 0.
std::uint64_t checksum(const void* data, std::size_t bytes, Sample sample) noexcept;

}  // namespace coop::plugin
