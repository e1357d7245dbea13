#pragma once

// Python's lock, given up while a thread waits for others: one of them may need it to get on.
//
// The plugin is not built against Python, and serves programs without it. So Python's functions are looked for when
// they are first needed; those used here are part of its stable interface, but for the question who has the lock.

namespace coop::plugin {

class WithoutPython {
 public:
  WithoutPython();
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;
  // Where Python is about to end, it ends a thread that wants its lock: by unwinding.
  ~WithoutPython() noexcept(false);

 private:
  void* state_ = nullptr;  // of the thread; null: it did not have the lock
};

}  // namespace coop::plugin
