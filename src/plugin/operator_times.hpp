#pragma once

// What operators cost, from the times that they took.
//
//     const OperatorTimes::Start start = times.begin(kind);
//     ... the operator ...
//     const double cost = times.end(start);     // nanoseconds, as far as is known by now

#include <cstdint>
#include <mutex>

#include "core/cost/cost_table.hpp"

namespace coop::plugin {

class OperatorTimes {
 public:
  struct Start {
    std::uint64_t kind = 0;
    std::uint64_t clock_ns = 0;
    std::uint64_t memory_ns = 0;  // spent in finding memory by then, on this thread
    int measurement = -1;         // a device's own
    bool is_first = false;
  };

  OperatorTimes() = default;
  OperatorTimes(const OperatorTimes&) = delete;
  OperatorTimes& operator=(const OperatorTimes&) = delete;
  virtual ~OperatorTimes() = default;

  // Whether an operator has run when it returns.
  [[nodiscard]] virtual bool has_wall_times() const { return false; }
  // Operators of one kind cost the same. 0: of no kind, it is only this run that counts.
  virtual Start begin(std::uint64_t kind) = 0;
  virtual double end(const Start& start) = 0;
  // Of one whose kind was found out when it had run.
  virtual double end_as(std::uint64_t kind, const Start& start) = 0;
  // One of this kind has run to its end.
  [[nodiscard]] virtual bool has_seen(std::uint64_t kind) = 0;
  // It has failed.
  virtual void drop(const Start& /*start*/) noexcept {}
  // What was measured until now was not typical.
  virtual void measure_anew() {}
};

// By the clock: the operator has run when it returns.
class WallTimes final : public OperatorTimes {
 public:
  [[nodiscard]] bool has_wall_times() const override { return true; }
  Start begin(std::uint64_t kind) override;
  double end(const Start& start) override { return end_as(start.kind, start); }
  double end_as(std::uint64_t kind, const Start& start) override;
  [[nodiscard]] bool has_seen(std::uint64_t kind) override;
  void measure_anew() override;

 private:
  std::mutex mutex_;
  CostTable costs_;
};

}  // namespace coop::plugin
