#pragma once

// Many simulations: every trace with every policy at every ratio, several at a time.

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/shared_options.hpp"
#include "sim/simulator/simulator.hpp"

namespace coop::cli {

struct SweepPlan {
  std::vector<LoadedTrace> traces;
  std::vector<std::string> policies;
  std::vector<double> ratios;
  WorldOptions world;
};

struct Cell {
  std::size_t trace = 0;
  std::size_t policy = 0;
  std::size_t ratio = 0;
};

class Sweep {
 public:
  explicit Sweep(const SweepPlan& plan);

  // Runs `jobs` simulations at a time until all are done or `stop` is set; those that have begun then are
  // still finished. `progress(done, cell)` is told of each, by one thread at a time. Throws what a
  // simulation throws.
  using Progress = std::function<void(std::size_t done, const Cell& cell)>;
  void run(std::size_t jobs, const std::atomic<bool>& stop, const Progress& progress);

  [[nodiscard]] const SweepPlan& plan() const { return plan_; }
  [[nodiscard]] std::size_t cell_count() const { return results_.size(); }
  [[nodiscard]] std::size_t done_count() const;
  [[nodiscard]] bool is_complete() const { return done_count() == cell_count(); }
  // By trace, then policy, then ratio.
  [[nodiscard]] Cell cell(std::size_t number) const;
  // Nothing if it was not run.
  [[nodiscard]] const std::optional<sim::SimulationResult>& result(const Cell& cell) const;

 private:
  [[nodiscard]] std::size_t number_of(const Cell& cell) const;
  [[nodiscard]] sim::SimulationResult simulate(const Cell& cell) const;

  const SweepPlan& plan_;
  std::vector<std::optional<sim::SimulationResult>> results_;  // by the cell's number
};

}  // namespace coop::cli
