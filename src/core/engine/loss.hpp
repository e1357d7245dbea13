#pragma once

// How much slower a program is for what is recomputed, and how much more memory would halve that.
//
// Note [What more memory would do]
// With more memory the dearest of what is evicted would stay: what costs most for each of its bytes. So the
// cost of every replay is booked under cost by bytes, with the bytes that it brought back. Down from the
// dearest, half of the loss is reached after a certain share of those bytes; and that share of what is away
// when most is away would have to fit besides. Where much is lost, that is too little: the same few are then
// made again and again, and with one of them there, others take its place. A quarter more than the budget has
// proved to help there, on first steps that are twice as slow.

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/bytes.hpp"

namespace coop {

struct Loss {
  double base_ns = 0;
  double replay_ns = 0;
  // Of all that could be run again: about a step of the program. A single replay can take as long, and is no reason
  // to say that the program is many times slower because few operators ran beside it.
  double recorded_ns = 0;
  Bytes more_to_halve = 0;  // bytes beyond the budget

  [[nodiscard]] double slowdown() const {
    const double of = std::max(base_ns, recorded_ns);
    return of > 0 ? 1 + replay_ns / of : 1;
  }
};

class LossMeter {
 public:
  // Something that the program may want again has been evicted; ...
  void evicted(Bytes bytes) noexcept;
  // ... has been brought back; ...
  void came_back(Bytes bytes) noexcept;
  // ... is of no more use.
  void died(Bytes bytes) noexcept;

  // The program has run an operator.
  void ran(double ns) noexcept { base_ns_ += ns; }
  void ran_again(double ns) noexcept { unbooked_ns_ += ns; }
  // All that ran again, and came back, was for one of the program's operators.
  void replay_is_over() noexcept;

  // Since the last begin_anew(), in this budget.
  [[nodiscard]] Loss loss(Bytes budget, double recorded_ns = 0) const noexcept;
  void begin_anew() noexcept;

 private:
  static constexpr std::size_t kDensities = 128;
  struct Booked {
    double ns = 0;
    double bytes = 0;
  };

  Bytes away_ = 0;
  Bytes most_away_ = 0;
  double died_away_ = 0;  // bytes
  double base_ns_ = 0;
  double unbooked_ns_ = 0;
  double unbooked_bytes_ = 0;
  std::array<Booked, kDensities> booked_{};  // by nanoseconds for a byte, the dearest first
};

}  // namespace coop
