#pragma once

// What is said while simulations run, and how they are stopped.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string_view>

namespace coop::cli {

constexpr int kInterrupted =
    130;  // an exit code, as shells say it: 128 and the number of the signal

// On a terminal one line that is written over; elsewhere, in a log, a line now and then, and none at all
// if it is over in a few seconds.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t total);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();  // takes the line away

  void set_total(std::size_t total) { total_ = total; }
  void show(std::size_t done, std::string_view what);

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t total_;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point next_;  // not before
};

// While it lives, the first Ctrl-C sets stopped(); the second ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;
  ~StopOnInterrupt();

  [[nodiscard]] const std::atomic<bool>& stopped() const;

 private:
  struct sigaction before_ {};
};

}  // namespace coop::cli
