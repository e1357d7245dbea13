#include "cli/sweep/progress.hpp"

#include <cstdio>
#include <string>

#include <unistd.h>

namespace coop::cli {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{100};
constexpr std::chrono::seconds kInLog{5};

// Of the process, as signals are.
std::atomic<bool> is_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not wait");

extern "C" void on_interrupt(int /*signal*/) { is_interrupted = true; }

}  // namespace

ProgressLine::ProgressLine(std::size_t total)
    : total_(total), is_terminal_(isatty(STDERR_FILENO) == 1) {
  next_ = Clock::now();
  if (!is_terminal_) next_ += kInLog;
}

ProgressLine::~ProgressLine() {
  if (is_terminal_ && is_shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(std::size_t done, std::string_view what) {
  const auto now = Clock::now();
  if (now < next_) return;
  if (is_terminal_) {
    next_ = now + kOnTerminal;
  } else {
    next_ = now + kInLog;
  }
  is_shown_ = true;
  const std::string line =
      std::to_string(done) + " of " + std::to_string(total_) + ": " + std::string(what);
  std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
}

StopOnInterrupt::StopOnInterrupt() {
  is_interrupted = false;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one does what it always does
  sigaction(SIGINT, &action, &before_);
}

StopOnInterrupt::~StopOnInterrupt() { sigaction(SIGINT, &before_, nullptr); }

const std::atomic<bool>& StopOnInterrupt::stopped() const { return is_interrupted; }

}  // namespace coop::cli
