#pragma once

#include <array>

#include "core/engine/engine.hpp"

namespace coop {

// One thread's stay in the engine: it holds the lock, and when it ends, tells the world of Calls that
// are gone.
class Engine::Entry {
 public:
  explicit Entry(Engine& engine) : engine_(engine), lock_(engine.mutex_) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() { tell_of_forgotten(); }

  // For what the world must not do while it runs a Call again.
  void refuse_inside_replay() const;
  // Until no other thread replays. What was looked at before may have changed.
  void wait_for_replay();

 private:
  void tell_of_forgotten() noexcept;

  Engine& engine_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace coop
