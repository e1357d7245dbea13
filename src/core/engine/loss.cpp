#include "core/engine/loss.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace coop {

void LossMeter::evicted(Bytes bytes) noexcept {
  away_ += bytes;
  most_away_ = std::max(most_away_, away_);
}

void LossMeter::came_back(Bytes bytes) noexcept {
  away_ -= bytes;
  unbooked_bytes_ += static_cast<double>(bytes);
}

void LossMeter::died(Bytes bytes) noexcept {
  away_ -= bytes;
  died_away_ += static_cast<double>(bytes);
}

void LossMeter::replay_is_over() noexcept {
  const double ns = std::exchange(unbooked_ns_, 0);
  const double bytes = std::exchange(unbooked_bytes_, 0);
  if (ns <= 0) return;
  // A quarter of a power of two each, around 2^-4 nanoseconds for a byte, which is 16 GB/s.
  constexpr double kSteps = 4;
  constexpr double kMiddle = -4;
  const double density = std::log2(ns / std::max(bytes, 1.0)) - kMiddle;
  const double number = kDensities / 2.0 - kSteps * density;
  Booked& booked = booked_[static_cast<std::size_t>(std::clamp(number, 0.0, kDensities - 1.0))];
  booked.ns += ns;
  booked.bytes += bytes;
}

Loss LossMeter::loss(Bytes budget, double recorded_ns) const noexcept {
  Booked all{.ns = unbooked_ns_, .bytes = unbooked_bytes_};
  for (const Booked& it : booked_) {
    all.ns += it.ns;
    all.bytes += it.bytes;
  }
  Loss loss{.base_ns = base_ns_, .replay_ns = all.ns, .recorded_ns = recorded_ns};
  if (all.bytes <= 0) return loss;
  Booked half;
  for (const Booked& it : booked_) {
    const double wanted = all.ns / 2 - half.ns;
    if (wanted <= 0) break;
    const double share = std::min(1.0, wanted / std::max(it.ns, wanted / 2));
    half.ns += share * it.ns;
    half.bytes += share * it.bytes;
  }
  // Of what is away when most is, some will die and never be missed.
  const double away = static_cast<double>(most_away_) * all.bytes / (all.bytes + died_away_);
  const double least = static_cast<double>(budget) / 4 * std::min(1.0, loss.slowdown() - 1);
  loss.more_to_halve = static_cast<Bytes>(std::max(half.bytes / all.bytes * away, least));
  return loss;
}

void LossMeter::begin_anew() noexcept {
  base_ns_ = unbooked_ns_ = unbooked_bytes_ = died_away_ = 0;
  booked_.fill({});
  most_away_ = away_;
}

}  // namespace coop
