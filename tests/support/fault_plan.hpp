#pragma once

// Which call of a run is to fail. A run counts, for every kind of place, how often it came by; a
// second run of the same program can then be told at which of them to fail.

#include <array>
#include <cstdint>
#include <stdexcept>

#include "core/engine/out_of_memory.hpp"
#include "core/policy/policy.hpp"

namespace coop::testing {

struct InjectedFault : std::runtime_error {
  InjectedFault() : std::runtime_error("a fault that a test has injected") {}
};

enum class FaultPlace : std::uint8_t {
  kReplayBegins,
  kReplayAllocates,  // each output of a replay, so with those before it already there
  kReplayEnds,       // everything is written, also over what is changed where it is
  kCopy,
  kRelocate,
  kOperatorAllocates,
  kSearch,  // for memory where there is no hole: finds nothing to evict, or is the end
};
inline constexpr std::array kFaultPlaces{
    "replay begins", "replay allocates",   "replay ends",       "copy",
    "relocate",      "operator allocates", "search for victims"};

class FaultPlan {
 public:
  using Counts = std::array<std::uint64_t, kFaultPlaces.size()>;

  FaultPlan() = default;
  // The call with this number at this place fails, once.
  FaultPlan(FaultPlace place, std::uint64_t number, bool is_out_of_memory)
      : place_(place), number_(number), is_armed_(true), is_out_of_memory_(is_out_of_memory) {}

  // Whether this is the one.
  bool strikes(FaultPlace place) {
    const std::uint64_t number = came_by_[static_cast<std::size_t>(place)]++;
    if (!is_armed_ || place != place_ || number != number_) return false;
    has_struck_ = true;
    return true;
  }
  void pass(FaultPlace place, const Pool& pool) {
    if (!strikes(place)) return;
    if (is_out_of_memory_) run_out_of_memory(pool);
    throw InjectedFault();
  }

  [[noreturn]] static void run_out_of_memory(const Pool& pool) {
    throw OutOfMemory(report_memory(pool, 0));
  }

  [[nodiscard]] bool is_out_of_memory() const { return is_out_of_memory_; }
  [[nodiscard]] bool has_struck() const { return has_struck_; }
  [[nodiscard]] const Counts& came_by() const { return came_by_; }

 private:
  FaultPlace place_ = FaultPlace::kReplayBegins;
  std::uint64_t number_ = 0;
  bool is_armed_ = false;
  bool is_out_of_memory_ = false;
  bool has_struck_ = false;
  Counts came_by_{};
};

// A policy that may be told to give up.
class FaultyPolicy final : public Policy {
 public:
  FaultyPolicy(Policy& policy, FaultPlan& faults)
      : Policy(policy.traits()), policy_(policy), faults_(faults) {}

  void choose_victims(const Pool& pool, const Request& request,
                      std::vector<BlockId>& victims) override {
    if (!faults_.strikes(FaultPlace::kSearch)) {
      policy_.choose_victims(pool, request, victims);
    } else if (faults_.is_out_of_memory()) {
      FaultPlan::run_out_of_memory(pool);
    }
  }

 private:
  Policy& policy_;
  FaultPlan& faults_;
};

}  // namespace coop::testing
