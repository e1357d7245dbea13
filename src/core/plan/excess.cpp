#include "core/plan/excess.hpp"

#include <algorithm>

namespace coop {
namespace {

double excess_of(Bytes memory, Bytes budget) {
  return memory > budget ? static_cast<double>(memory - budget) : 0;
}

// A power, but the same on every machine.
double weight_of(double part) { return part * part * part * part; }

}  // namespace

void Excess::measure(const std::vector<Bytes>& memory, Bytes budget) {
  const std::size_t moments = memory.size();
  worst_ = 0;
  total_ = 0;
  first_ = moments;
  last_ = 0;
  for (std::size_t moment = 0; moment < moments; ++moment) {
    if (memory[moment] <= budget) continue;
    first_ = std::min(first_, moment);
    last_ = moment;
    worst_ = std::max(worst_, excess_of(memory[moment], budget));
  }
  for (std::vector<double>& sums : sums_) sums.assign(moments + 1, 0);
  if (worst_ == 0) return;
  for (std::size_t moment = first_; moment <= last_; ++moment) {
    const double excess = excess_of(memory[moment], budget);
    const double weight = weight_of(excess / worst_);
    total_ += excess * weight;
    double size = worst_;
    for (std::vector<double>& sums : sums_) {
      sums[moment + 1] = sums[moment] + std::min(excess, size) * weight;
      size /= 2;
    }
  }
  for (std::vector<double>& sums : sums_) {
    std::fill(sums.begin() + static_cast<std::ptrdiff_t>(last_) + 1, sums.end(), sums[last_ + 1]);
  }
}

double Excess::taken_by(const Gap& gap, Bytes bytes) const {
  if (gap.before <= first_ || gap.after >= last_) return 0;
  const auto sum = [&](std::size_t size) {
    return sums_[size][gap.before] - sums_[size][gap.after + 1];
  };
  const auto wanted = static_cast<double>(bytes);
  double size = worst_;
  if (wanted >= size) return sum(0);
  std::size_t at = 0;
  for (; at + 1 < kSizes && size / 2 >= wanted; ++at) size /= 2;
  if (at + 1 == kSizes) return sum(at) * (wanted / size);
  const double smaller = sum(at + 1);  // size / 2 < wanted <= size
  return smaller + (sum(at) - smaller) * (wanted - size / 2) / (size / 2);
}

double Excess::weigh(const std::vector<Bytes>& memory, Bytes budget, double worst) {
  double total = 0;
  for (const Bytes bytes : memory) {
    const double part = excess_of(bytes, budget) / worst;
    total += part * weight_of(part);
  }
  return total;
}

}  // namespace coop
