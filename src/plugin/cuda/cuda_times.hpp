#pragma once

// What operators cost on a GPU, by events.
//
// An operator is measured the first few times that one of its kind runs, and never again; the first time the host
// waits for it, so that something is known at once. Between two events lies also the time that the host needs to
// enqueue what the operator consists of, if the GPU has nothing else to do meanwhile. So the GPU is held before
// the first event until the host is done, though not for long: an operator may itself wait for the GPU. Where that
// was not long enough (the host was loading a kernel, or looking for an algorithm), the host's time is taken off
// instead, which leaves too little rather than too much, and counts until there is something better.
//
// An operator costs at least what the host needs to enqueue it. Where the GPU is the slower of the two that is hardly
// ever the larger; where it waits for the host, what is run again costs the host's time, however little the GPU does.

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include <c10/cuda/CUDAStream.h>

#include "plugin/operator_times.hpp"

namespace coop::plugin {

class CudaTimes final : public OperatorTimes {
 public:
  explicit CudaTimes(c10::DeviceIndex device) : device_(device) {}
  ~CudaTimes() override;

  Start begin(std::uint64_t kind) override;
  double end(const Start& start) override;
  double end_as(std::uint64_t kind, const Start& start) override;
  [[nodiscard]] bool has_seen(std::uint64_t kind) override;
  void drop(const Start& start) noexcept override;

 private:
  struct Measurement {
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    std::uint64_t kind = 0;
    double host_ns = 0;
    std::atomic<bool> may_go = false;  // the GPU
  };
  struct Kind {
    std::uint32_t runs = 0;  // that were measured
    bool has_ended = false;  // one of them, measured or not
    std::optional<double> least_ns;
    std::optional<double> least_host_ns;
    double guess_ns = 0;
    [[nodiscard]] double cost() const {
      return std::max(least_ns.value_or(guess_ns), least_host_ns.value_or(0));
    }
  };

  int take();
  Measurement& measurement(int number) { return measurements_[static_cast<std::size_t>(number)]; }
  static void hold_gpu(void* measurement);
  void note(const Measurement& measurement);
  void look_at_those_that_are_over();
  double ended(std::uint64_t kind);

  c10::DeviceIndex device_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Kind> kinds_;
  bool has_forgotten_ = false;            // some of them
  std::deque<Measurement> measurements_;  // whose addresses the GPU's own thread has
  std::vector<int> free_;
  std::vector<int> pending_;
};

}  // namespace coop::plugin
