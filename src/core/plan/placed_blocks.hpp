#pragma once

// Blocks that have a place already, and the lowest place for another one.
//
// Whoever lays out a step asks for each of some thousand blocks, a hundred times over, and nearly all of those that are
// placed are not there when the block is. So lives are looked at alone and many at once, in a way that becomes vector
// instructions; addresses, only of what is in the way.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/step_evaluation.hpp"

namespace coop {

struct BlockLife {
  Bytes bytes = 0;       // in whole grains
  Moment from = 0;       // the first moment in which it is there
  Moment until = 0;      // the last
  Moment early_end = 0;  // it is there before this moment as well
};

class PlacedBlocks {
 public:
  struct Place {
    Bytes begin = 0;
    Bytes end = 0;
    Moment from = 0;
    Moment until = 0;
  };

  PlacedBlocks() { clear(); }
  void clear() {
    for (auto* addresses : {&begin_, &end_}) addresses->clear();
    for (auto* moments : {&from_, &until_}) moments->assign(kAtOnce, kNever);
  }
  void add(const Place& place) {
    const auto found = std::upper_bound(begin_.begin(), begin_.end(), place.begin);
    const auto at = found - begin_.begin();
    begin_.insert(found, place.begin);
    end_.insert(end_.begin() + at, place.end);
    from_.insert(from_.begin() + at, place.from);
    until_.insert(until_.begin() + at, place.until);
  }

  // At or above `lowest`.
  [[nodiscard]] Bytes lowest_place(const BlockLife& block, Bytes lowest) const {
    Bytes place = lowest;
    for (std::size_t first = 0; first < begin_.size(); first += kAtOnce) {
      if (begin_[first] >= place + block.bytes) break;
      for (std::uint32_t there = those_that_meet(block, first); there != 0; there &= there - 1) {
        const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(there));
        if (begin_[i] >= place + block.bytes) return place;
        place = std::max(place, end_[i]);
      }
    }
    return place;
  }

 private:
  static constexpr std::size_t kAtOnce = 32;
  static constexpr Moment kNever =
      0xffffffff;  // behind the last there are some that are never there
  static constexpr auto kBit = [] {
    std::array<std::uint32_t, kAtOnce> bits{};
    for (std::size_t i = 0; i < kAtOnce; ++i) bits[i] = std::uint32_t{1} << i;
    return bits;
  }();

  // Bit i: what lies at first + i is there when the block is.
  [[nodiscard]] std::uint32_t those_that_meet(const BlockLife& block, std::size_t first) const {
    const Moment* const from = &from_[first];
    const Moment* const until = &until_[first];
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const auto is = [](bool condition) { return 0U - static_cast<std::uint32_t>(condition); };
      const std::uint32_t all_ones_if =
          (is(from[i] <= block.until) & is(block.from <= until[i])) | is(from[i] < block.early_end);
      bits |= all_ones_if & kBit[i];
    }
    return bits;
  }

  // By address.
  std::vector<Bytes> begin_;
  std::vector<Bytes> end_;
  std::vector<Moment> from_;
  std::vector<Moment> until_;
};

}  // namespace coop
