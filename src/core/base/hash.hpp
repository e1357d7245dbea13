#pragma once

#include <cstdint>

namespace coop {

// One more number in a hash, in order.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  std::uint64_t z = hash ^ (number + 0x9E3779B97F4A7C15 + (hash << 6U) + (hash >> 2U));
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EB;
  return z ^ (z >> 31U);
}

}  // namespace coop
