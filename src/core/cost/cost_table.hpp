#pragma once

// What an operator costs, from the times that it took.
//
// One measurement says little: the first runs of a kind are slow (caches, memory never touched before, kernels
// chosen by trial), and any run may be interrupted. An operator of the same kind with the same shapes costs
// the same, though, and what disturbs a run makes it longer; so its cost is the lower quartile of its first runs.
// They are so many that those of the first step, in which all memory is new, are not alone among them. After
// those it is settled, and stays what it is: whoever compares the costs of one step with those of the next
// compares like with like.
//
// Not safe for use by several threads at once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace coop {

class CostTable {
 public:
  static constexpr std::size_t kRuns = 16;

  // `most_kinds`: of which anything is remembered. A program whose shapes are always new begins anew when
  // there are more.
  explicit CostTable(std::size_t most_kinds = std::size_t{1} << 16U) : most_kinds_(most_kinds) {}

  // An operator of this kind has run, and took `measured` nanoseconds. What it costs, as far as is known now.
  double observe(std::uint64_t kind, double measured);
  [[nodiscard]] bool knows(std::uint64_t kind) const { return kinds_.contains(kind); }
  [[nodiscard]] std::size_t kinds() const { return kinds_.size(); }

 private:
  struct Kind {
    std::array<float, kRuns> sorted{};
    std::uint32_t runs = 0;
  };
  std::size_t most_kinds_;
  std::unordered_map<std::uint64_t, Kind> kinds_;
};

}  // namespace coop
