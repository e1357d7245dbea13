#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/check.hpp"

namespace coop {

// Elements by the number of their coming, which is counted on for ever; the oldest can be forgotten. Adding is amortised
// O(1) and may throw, with nothing changed; forgetting neither throws nor allocates. The memory is one ring, which grows
// and never shrinks: a queue that keeps its length allocates nothing.
template <typename T>
class NumberedQueue {
 public:
  explicit NumberedQueue(std::uint64_t first = 0) : first_(first), end_(first) {}

  void push(const T& element) {
    reserve(size() + 1);
    slot(end_) = element;
    ++end_;
  }
  void append(std::span<const T> elements) {
    reserve(size() + elements.size());
    for (const T& element : elements) slot(end_++) = element;
  }
  void forget_until(std::uint64_t number) noexcept {
    COOP_CHECK(first_ <= number && number <= end_);
    first_ = number;
  }

  [[nodiscard]] T& operator[](std::uint64_t number) { return slot(number); }
  [[nodiscard]] const T& operator[](std::uint64_t number) const {
    return slots_[number & (slots_.size() - 1)];
  }
  [[nodiscard]] bool contains(std::uint64_t number) const {
    return first_ <= number && number < end_;
  }
  // The number of the oldest, and of the next that comes.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - first_); }

 private:
  [[nodiscard]] T& slot(std::uint64_t number) { return slots_[number & (slots_.size() - 1)]; }

  void reserve(std::size_t count) {
    if (count <= slots_.size()) return;
    std::size_t room = std::max<std::size_t>(slots_.size(), 16);  // a power of two
    while (room < count) room *= 2;
    std::vector<T> grown(room);
    for (std::uint64_t i = first_; i < end_; ++i) grown[i & (room - 1)] = std::as_const(*this)[i];
    slots_ = std::move(grown);
  }

  std::vector<T> slots_;
  std::uint64_t first_;
  std::uint64_t end_;
};

}  // namespace coop
