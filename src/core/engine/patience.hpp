#pragma once

#include <algorithm>

namespace coop {

// How long Calls may be run again before the program has to move on.
//
// A budget that is a little too small does not fail: every operator makes again what the one before it
// pushed out, and a step takes a thousand times as long. Nobody waits for that, and nobody can tell it from
// a hang; so it counts as out of memory. Every operator of the program's buys time, `most_slowdown` times as
// much as it took, up to that many times all that is recorded and could be run again.
class Patience {
 public:
  // 0: without end.
  explicit Patience(double most_slowdown) : most_slowdown_(most_slowdown) {}

  // The program has come this much further, ...
  void earn(double cost) {
    left_ = std::min(left_ + most_slowdown_ * cost, most_slowdown_ * recorded_);
  }
  // ... with a Call that may be run again, ...
  void record(double cost) { recorded_ += cost; }
  // ... until it is forgotten.
  void forget(double cost) { recorded_ = std::max(0.0, recorded_ - cost); }

  // False if there is no time to run this Call again. Whoever asks next gets all of it: the program has been
  // told, and may have made room.
  [[nodiscard]] bool spend(double cost) {
    if (most_slowdown_ <= 0) return true;
    left_ -= cost;
    if (left_ >= 0) return true;
    left_ = most_slowdown_ * recorded_;
    return false;
  }
  [[nodiscard]] double recorded() const { return recorded_; }

 private:
  double most_slowdown_;
  double recorded_ = 0;
  double left_ = 0;
};

}  // namespace coop
