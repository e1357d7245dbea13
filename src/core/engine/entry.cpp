#include "core/engine/entry.hpp"

#include <algorithm>

#include "core/base/errors.hpp"

namespace coop {

void Engine::Entry::refuse_inside_replay() const {
  if (engine_.replaying_ == std::this_thread::get_id()) {
    throw InvalidArgument(
        "an operator that is run again must not begin others, nor ask for storages");
  }
}

void Engine::Entry::wait_for_replay() {
  refuse_inside_replay();
  engine_.replay_ended_.wait(lock_, [&] { return engine_.replaying_ == std::thread::id(); });
}

// What the world drops may release storages, which ends here again: whoever is at it already tells of
// those too, so that this never nests.
void Engine::Entry::tell_of_forgotten() noexcept {
  std::vector<Token>& forgotten = engine_.forgotten_;
  if (forgotten.empty() || engine_.is_forgetting_) return;
  engine_.is_forgetting_ = true;
  while (!forgotten.empty()) {
    std::array<Token, 16> some{};
    const std::size_t count = std::min(some.size(), forgotten.size());
    std::copy(forgotten.end() - static_cast<std::ptrdiff_t>(count), forgotten.end(), some.begin());
    forgotten.resize(forgotten.size() - count);
    lock_.unlock();
    for (std::size_t i = 0; i < count; ++i) engine_.world_.forget(some[i]);
    lock_.lock();
  }
  engine_.is_forgetting_ = false;
}

}  // namespace coop
