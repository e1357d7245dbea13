#pragma once

// Whether recomputing has got out of hand. Looked at between operators, over some seconds of them.

#include <atomic>
#include <optional>
#include <string>

#include "core/engine/engine.hpp"

namespace coop::plugin {

class Pace {
 public:
  // Windows of so many nanoseconds of operators, run for the first time or again, and of a step of the program, unless
  // it is `most` times slower before that.
  Pace(double window_ns, double most) : window_ns_(window_ns), most_(most) {}

  // Cheap. The loss of a window that has just ended; none in the first, in which the engine learns.
  std::optional<Loss> look(Engine& engine);

 private:
  double window_ns_;
  double most_;
  std::atomic<unsigned> looks_ = 0;
  std::atomic<bool> is_first_ = true;
};

// More slowly than this is worth a word: recomputing takes as long as the program itself.
inline constexpr double kMuchSlower = 2;

// What to say of a budget that would halve the loss, where there can be `most`.
std::string what_would_halve(Bytes enough, Bytes most);

// Throws c10::OutOfMemoryError; last_out_of_memory() has the budget that would halve the loss.
[[noreturn]] void raise_too_slow(const Loss& loss, double max_slowdown, const MemoryReport& report);

}  // namespace coop::plugin
