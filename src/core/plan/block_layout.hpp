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
// much for each time that it stuck out.
//
// Note [Full moments]
//
// Where a moment is as full as the budget, what is there then must lie without a hole between. By size it does not: a
// gradient that stays comes to lie above an activation that is about to go, and leaves a hole. So what is there at the
// fullest moment goes before all else, what lives longest first:
//
//        +---------------------------+------+
//        |            A1             |  G3  |    A  activations, the first is read last
//        +----+-----------------+----+------+    G  a gradient for each, which stays
//             |       A2        |    G2     |
//             +----+-------+----+-----------+
//                  |  A3   |       G1       |
//                  +-------+----------------+
//                  forward | backward      end
//
// That packs it for certain, as a staircase on either side. As a rule more than one moment is as full as that: where the
// forward pass ends all is activations, and where the step ends all is gradients. What is there at the other one, where the
// most stuck out, goes next, and must fit beneath the stairs: what is gone before the steps begin lies lowest. It is tried with
// the first of those moments and with the last; and with one moment, another one each time.
//
// Placing a block looks at those that have a place: quadratic in their number, 10 ms for 10,000 of them. So the
// more there are, the fewer layouts are tried, and beyond kMostBlocks none is.
//
// Note [From step to step]
//
// The step repeats, and what is alive at its end lies in the next where it lay: its place must be free at the
// beginning of a step too, until what takes its part there has gone. Such a block has an early life as well.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/plan/byte_range.hpp"
#include "core/plan/placed_blocks.hpp"
#include "core/plan/step_evaluation.hpp"

namespace coop {

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
  // What is there at each moment, with what is held and the reserve. Where that is more than the budget, no layout fits.
  [[nodiscard]] std::span<const Bytes> least(std::span<const BlockLife> blocks, Bytes reserve);

 private:
  enum class Order : std::uint8_t { kSize, kSizeTimesLife, kSizeMoreEachTime };
  // What is there at some moment, or two, goes before all else: see Note [Full moments].
  enum class Full : std::uint8_t { kNone, kFirst, kLast, kAnotherEachTime };
  struct Orders {
    Full full = Full::kNone;
    Bytes nearly =
        1;  // part of the budget by which a moment that counts as full may be less so than the fullest
    Order then = Order::kSize;
  };
  // Of layouts of recorded and of generated networks, each brings some about that those before it do not.
  static constexpr std::array kOrders = {Orders{Full::kNone, 1, Order::kSize},
                                         Orders{Full::kFirst, 300, Order::kSize},
                                         Orders{Full::kAnotherEachTime, 1000, Order::kSize},
                                         Orders{Full::kLast, 1000, Order::kSizeTimesLife},
                                         Orders{Full::kFirst, 50, Order::kSizeTimesLife},
                                         Orders{Full::kNone, 1, Order::kSizeTimesLife},
                                         Orders{Full::kNone, 1, Order::kSizeMoreEachTime}};
  struct FullMoments {
    std::optional<Moment> first;
    std::optional<Moment> second;
  };
  struct Key {               // the largest comes first
    std::uint32_t rank = 0;  // times that it stuck out, unless it goes before all else
    double size = 0;
    Bytes life = 0;
  };
  [[nodiscard]] static double size_of(const BlockLife& block, Order by, std::uint32_t stuck_out);
  [[nodiscard]] Bytes end_of_reserve(Bytes reserve) const;
  [[nodiscard]] FullMoments moments_of(const Orders& orders) const;
  void sort(std::span<const BlockLife> blocks, Order by, const FullMoments& full);
  [[nodiscard]] Key key_of(const BlockLife& block, Order by, std::uint32_t stuck_out,
                           const FullMoments& full) const;
  void add_all_up(std::span<const BlockLife> blocks);
  [[nodiscard]] Moment where_most_sticks_out(std::span<const BlockLife> blocks,
                                             const Layout& layout);
  template <typename Counts>
  void add_up(std::span<const BlockLife> blocks, const Counts& counts);
  [[nodiscard]] bool sticks_out(const BlockLife& block, Bytes offset) const;
  void place_all(std::span<const BlockLife> blocks, Bytes lowest, Layout& layout);

  std::vector<ByteRange> held_;  // by address, apart from each other
  PlacedBlocks held_blocks_;
  Bytes budget_;
  PlacedBlocks placed_;
  // By block.
  std::vector<Key> keys_;
  std::vector<std::uint32_t> stuck_out_;  // times
  std::vector<std::uint32_t> order_;
  // By moment: all that is there, some of it, and all with what is held and the reserve.
  std::vector<Bytes> all_;
  std::vector<Bytes> there_;
  std::vector<Bytes> least_;
};

}  // namespace coop
