#include "plugin/operator_times.hpp"

#include "plugin/session.hpp"

namespace coop::plugin {

OperatorTimes::Start WallTimes::begin(std::uint64_t kind) {
  return {.kind = kind, .clock_ns = steady_clock_ns(), .memory_ns = this_thread.memory_ns};
}

double WallTimes::end_as(std::uint64_t kind, const Start& start) {
  const std::uint64_t spent_on_memory = this_thread.memory_ns - start.memory_ns;
  const auto took = static_cast<double>(steady_clock_ns() - start.clock_ns - spent_on_memory);
  if (kind == 0) return took;
  const std::scoped_lock lock(mutex_);
  return costs_.observe(kind, took);
}

bool WallTimes::has_seen(std::uint64_t kind) {
  const std::scoped_lock lock(mutex_);
  return costs_.knows(kind);
}

void WallTimes::measure_anew() {
  const std::scoped_lock lock(mutex_);
  costs_ = CostTable();
}

}  // namespace coop::plugin
