#include "plugin/pace.hpp"

namespace coop::plugin {

std::optional<Loss> Pace::look(Engine& engine) {
  constexpr unsigned kOperators = 64;  // the engine's lock is not for nothing
  if (looks_.fetch_add(1, std::memory_order_relaxed) % kOperators != 0) return std::nullopt;
  const Loss loss = engine.loss();
  if (loss.base_ns + loss.replay_ns < window_ns_) return std::nullopt;
  if (loss.base_ns < loss.recorded_ns && loss.slowdown() <= most_) return std::nullopt;
  engine.begin_loss_anew();
  if (is_first_.exchange(false)) return std::nullopt;
  return loss;
}

}  // namespace coop::plugin
