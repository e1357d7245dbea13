#pragma once

#include <cstdint>

#include "core/base/split_mix.hpp"

namespace coop::sim {

class Random : public SplitMix {
 public:
  using SplitMix::SplitMix;
  // In [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + next() % (high - low + 1);
  }
};

}  // namespace coop::sim
