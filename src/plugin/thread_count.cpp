#include "plugin/thread_count.hpp"

#include <ATen/Parallel.h>

// Those that PyTorch itself uses. It may have been built with other libraries.
extern "C" {
__attribute__((weak)) int omp_get_max_threads();
__attribute__((weak)) void omp_set_num_threads(int count);
__attribute__((weak)) int MKL_Set_Num_Threads_Local(int count);
}

namespace coop::plugin {
namespace {

bool has_openmp() { return omp_get_max_threads != nullptr && omp_set_num_threads != nullptr; }

void set_thread_count(int count) {
  if (has_openmp()) {
    omp_set_num_threads(count);
  } else {
    at::set_num_threads(count);
  }
}

// MKL goes by OpenMP's number unless it has one of its own for the thread, which PyTorch gives it when it chooses. 0:
// none. Returns what it had.
int exchange_mkl_count(int count) {
  return MKL_Set_Num_Threads_Local != nullptr ? MKL_Set_Num_Threads_Local(count) : 0;
}

}  // namespace

int thread_count() { return has_openmp() ? omp_get_max_threads() : at::get_num_threads(); }

bool is_thread_count_chosen() {
  if (MKL_Set_Num_Threads_Local == nullptr) return true;  // or nobody can tell
  const int count = exchange_mkl_count(0);
  exchange_mkl_count(count);
  return count != 0;
}

void choose_thread_count() { static_cast<void>(at::get_num_threads()); }

ThreadCountGuard::ThreadCountGuard(int wanted) {
  if (wanted == 0) return;
  const int now = thread_count();
  if (now == wanted) return;
  before_ = now;
  set_thread_count(wanted);
  mkl_before_ = exchange_mkl_count(wanted);
}

ThreadCountGuard::~ThreadCountGuard() {
  if (before_ == 0) return;
  set_thread_count(before_);
  exchange_mkl_count(mkl_before_);
}

}  // namespace coop::plugin
