#pragma once

// Addresses for blocks whose lives are known beforehand.
//
// Note [The layout of blocks]
//
//     address
//        ^   |######################## held ##########################|
//        |   |         +-----+      +----+   +---------+              |
//        |   | +-------+  B  |      | C  +---+    D    |              |
//        |   | |   A   +-----+------+----+---+---------+              |
//        |   |.................. room for slabs ......................|
//        |   +-------------------------------------------------------> moment
//
// One block after the other gets the lowest place that is free during its whole life; first those that are
// hardest to place, the largest. What then sticks out of the budget goes first the next time, which mends most
// layouts; then the same by size times life. For some layouts that is too much at once: then a block counts twice as
// much for each time that it stuck out, by size, and by size times the root of life.
//
// Placing a block looks at those that have a place: quadratic in their number, 50 ms for 10,000 of them. So the
// more there are, the fewer layouts are tried, and beyond kMostBlocks none is.
//
// Note [From step to step]
//
// The step repeats, and what is alive at its end lies in the next where it lay: its place must be free at the
// beginning of a step too, until what takes its part there has gone. Such a block has an early life as well.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/byte_range.hpp"
#include "core/plan/step_evaluation.hpp"

namespace coop {

struct BlockLife {
  Bytes bytes = 0;       // in whole grains
  Moment from = 0;       // the first moment in which it is there
  Moment until = 0;      // the last
  Moment early_end = 0;  // it is there before this moment as well
};

struct Layout {
  std::vector<Bytes> offsets;  // by block
  Bytes height = 0;            // the end of the highest
};

class BlockLayout {
 public:
  static constexpr std::size_t kMostBlocks = 50'000;

  // `held` is there all the time.
  BlockLayout(std::span<const ByteRange> held, Bytes budget);

  // Below the budget, or as low as was found. The lowest `reserve` bytes beside what is held stay free. There are at
  // most kMostBlocks.
  [[nodiscard]] Layout lay_out(std::span<const BlockLife> blocks, Bytes reserve);

 private:
  enum class Order : std::uint8_t { kSize, kSizeTimesLife, kSizeMoreEachTime, kBothMoreEachTime };
  static constexpr std::array kOrders = {Order::kSize, Order::kSizeTimesLife,
                                         Order::kSizeMoreEachTime, Order::kBothMoreEachTime};
  struct Placed {
    Bytes begin = 0;
    Bytes end = 0;
    Moment from = 0;
    Moment until = 0;
  };

  // The largest comes first.
  [[nodiscard]] static double key_of(const BlockLife& block, Order by, std::uint32_t stuck_out);
  [[nodiscard]] Bytes end_of_reserve(Bytes reserve) const;
  void place_all(std::span<const BlockLife> blocks, std::span<const std::uint32_t> order,
                 Bytes lowest, Layout& layout);
  [[nodiscard]] Bytes find_place(const BlockLife& block, Bytes lowest) const;
  void add(const Placed& placed);

  std::vector<Placed> held_;  // by address, apart from each other
  Bytes budget_;
  std::vector<Placed> placed_;  // by address
  std::vector<double> keys_;    // by block
};

}  // namespace coop
