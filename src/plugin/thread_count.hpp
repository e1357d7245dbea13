#pragma once

// How many threads an operator may use that is run by the calling thread.
//
// PyTorch's own functions for that do more than they say. To ask is to choose: a new thread has the number that OpenMP
// gives it until PyTorch is first asked, and from then on the one that the program has set. And to set it is to set it
// for all threads to come. A thread on which coop looks on must go on as it would without.

namespace coop::plugin {

[[nodiscard]] int thread_count();

// PyTorch has been asked on this thread, or the program has said it there. What runs before that may have it chosen.
[[nodiscard]] bool is_thread_count_chosen();
void choose_thread_count();

// That many while it lives, on a thread for which it is chosen. 0: it is of no matter.
class ThreadCountGuard {
 public:
  explicit ThreadCountGuard(int wanted);
  ThreadCountGuard(const ThreadCountGuard&) = delete;
  ThreadCountGuard& operator=(const ThreadCountGuard&) = delete;
  ~ThreadCountGuard();

 private:
  int before_ = 0;  // 0: as wanted
  int mkl_before_ = 0;
};

}  // namespace coop::plugin
