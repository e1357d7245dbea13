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
// Note [The fullest moment]
//
// Where a moment is as full as the budget, what is there then must lie without a hole between. By size it does not: a
// gradient that stays comes to lie above an activation that is about to go, and leaves a hole. So all that is there at that
// moment goes first, those that live longest at the bottom, and all else as above:
//
//        |        |           +------------+
//        |        |     +-----+------------+-------
//        |   +----|-----+-----+--------------------
//        +---+----|--------------------------------
//                 the fullest moment
//
// That packs it for certain, and what comes and goes on either side makes a staircase above which nothing is wasted either. As
// a rule several moments are as full as each other: once the first of these is tried, and once the last, and then
// whichever one the most stuck out at.
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
  // What is there at this moment goes before all else: none; the fullest; one after the other that most stuck out at.
  enum class Moments : std::uint8_t { kNone, kFullest, kWhereMostStuckOut };
  struct Orders {
    Moments first = Moments::kNone;
    Order then = Order::kSize;
  };
  static constexpr std::array kOrders = {Orders{Moments::kNone, Order::kSize},
                                         Orders{Moments::kFullest, Order::kSize},
                                         Orders{Moments::kFullest, Order::kSizeTimesLife},
                                         Orders{Moments::kWhereMostStuckOut, Order::kSize},
                                         Orders{Moments::kNone, Order::kSizeTimesLife},
                                         Orders{Moments::kNone, Order::kSizeMoreEachTime},
                                         Orders{Moments::kNone, Order::kBothMoreEachTime}};
  struct Placed {
    Bytes begin = 0;
    Bytes end = 0;
    Moment from = 0;
    Moment until = 0;
  };

  struct Key {  // the largest comes first
    std::uint32_t times_stuck_out = 0;
    double size = 0;
    Bytes life = 0;
  };
  [[nodiscard]] static double size_of(const BlockLife& block, Order by, std::uint32_t stuck_out);
  [[nodiscard]] Bytes end_of_reserve(Bytes reserve) const;
  void sort(std::span<const BlockLife> blocks, const Orders& orders, Moment moment);
  void find_fullest(std::span<const BlockLife> blocks);
  [[nodiscard]] Moment where_most_sticks_out(std::span<const BlockLife> blocks,
                                             const Layout& layout);
  template <typename Counts>
  void add_up(std::span<const BlockLife> blocks, const Counts& counts);
  [[nodiscard]] bool sticks_out(const BlockLife& block, Bytes offset) const;
  void place_all(std::span<const BlockLife> blocks, Bytes lowest, Layout& layout);
  [[nodiscard]] Bytes find_place(const BlockLife& block, Bytes lowest) const;
  void add(const Placed& placed);

  std::vector<Placed> held_;  // by address, apart from each other
  Bytes budget_;
  std::vector<Placed> placed_;  // by address
  // By block.
  std::vector<Key> keys_;
  std::vector<std::uint32_t> stuck_out_;  // times
  std::vector<std::uint32_t> order_;
  // By moment: all that is there, and some of it.
  std::vector<Bytes> all_;
  std::vector<Bytes> there_;
  Moment first_fullest_ = 0;
  Moment last_fullest_ = 0;
};

}  // namespace coop
