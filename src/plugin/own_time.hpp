#pragma once

// What coop itself takes of a program's time, while somebody wants to know: of each operator that the engine hears of,
// from when it comes in until it goes back, all but its kernel and the kernels that are run again for it. What takes and
// gives memory within a kernel counts as the kernel's.

#include <atomic>
#include <cstdint>

#include "core/engine/evicting_pool.hpp"
#include "plugin/thread_state.hpp"

namespace coop::plugin {

class OwnTime {
 public:
  struct Sums {
    std::uint64_t operators = 0;
    std::uint64_t own_ns = 0;
    std::uint64_t kernel_ns = 0;
  };

  void begin() noexcept {
    operators_ = own_ns_ = kernel_ns_ = 0;
    is_on_ = true;
  }
  Sums end() noexcept {
    is_on_ = false;
    return {.operators = operators_, .own_ns = own_ns_, .kernel_ns = kernel_ns_};
  }

  // An operator, while this lives.
  class Watch {
   public:
    explicit Watch(OwnTime& times)
        : times_(times.is_on_.load(std::memory_order_relaxed) ? &times : nullptr) {
      if (times_ == nullptr) return;
      kernel_ns_ = this_thread.kernel_ns;
      began_ns_ = steady_clock_ns();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
      if (times_ == nullptr) return;
      const std::uint64_t kernel_ns = this_thread.kernel_ns - kernel_ns_;
      ++times_->operators_;
      times_->kernel_ns_ += kernel_ns;
      times_->own_ns_ += steady_clock_ns() - began_ns_ - kernel_ns;
    }

   private:
    OwnTime* times_;
    std::uint64_t kernel_ns_ = 0;
    std::uint64_t began_ns_ = 0;
  };

  // A kernel, while this lives. Of one that calls operators it is all of its time.
  class Kernel {
   public:
    explicit Kernel(const OwnTime& times) : is_on_(times.is_on_.load(std::memory_order_relaxed)) {
      if (!is_on_) return;
      kernel_ns_ = this_thread.kernel_ns;
      began_ns_ = steady_clock_ns();
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;
    ~Kernel() {
      if (is_on_) this_thread.kernel_ns = kernel_ns_ + steady_clock_ns() - began_ns_;
    }

   private:
    bool is_on_;
    std::uint64_t kernel_ns_ = 0;
    std::uint64_t began_ns_ = 0;
  };

 private:
  std::atomic<bool> is_on_ = false;
  std::atomic<std::uint64_t> operators_ = 0;
  std::atomic<std::uint64_t> own_ns_ = 0;
  std::atomic<std::uint64_t> kernel_ns_ = 0;
};

}  // namespace coop::plugin
