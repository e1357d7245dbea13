#pragma once

#include <cstdint>

namespace coop {

// SplitMix64: random numbers from a seed, small, fast, and the same everywhere, which the standard's
// distributions are not.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EB;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace coop
