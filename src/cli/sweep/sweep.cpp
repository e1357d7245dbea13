#include "cli/sweep/sweep.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

namespace coop::cli {

Sweep::Sweep(const SweepPlan& plan)
    : plan_(plan), results_(plan.traces.size() * plan.policies.size() * plan.ratios.size()) {}

std::size_t Sweep::number_of(const Cell& cell) const {
  return (cell.trace * plan_.policies.size() + cell.policy) * plan_.ratios.size() + cell.ratio;
}

Cell Sweep::cell(std::size_t number) const {
  const std::size_t ratios = plan_.ratios.size();
  const std::size_t policies = plan_.policies.size();
  return {.trace = number / ratios / policies,
          .policy = number / ratios % policies,
          .ratio = number % ratios};
}

const std::optional<sim::SimulationResult>& Sweep::result(const Cell& cell) const {
  return results_[number_of(cell)];
}

std::size_t Sweep::done_count() const {
  return static_cast<std::size_t>(std::count_if(
      results_.begin(), results_.end(), [](const auto& result) { return result.has_value(); }));
}

sim::SimulationResult Sweep::simulate(const Cell& cell) const {
  const LoadedTrace& loaded = plan_.traces[cell.trace];
  sim::SimulationOptions options = simulation_options(plan_.world, plan_.policies[cell.policy]);
  options.budget = budget_for(loaded, plan_.ratios[cell.ratio]);
  return sim::simulate(loaded.trace, options);
}

void Sweep::run(std::size_t jobs, const std::atomic<bool>& stop, const Progress& progress) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // guards what follows, and progress
  std::size_t done = 0;
  std::exception_ptr error;

  const auto work = [&] {
    try {
      while (!stop) {
        const std::size_t number = next++;
        if (number >= results_.size()) return;
        results_[number] = simulate(cell(number));
        const std::lock_guard lock(mutex);
        progress(++done, cell(number));
      }
    } catch (...) {
      next = results_.size();
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t most = std::min(jobs, results_.size());
    for (std::size_t i = 1; i < most; ++i) threads.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace coop::cli
