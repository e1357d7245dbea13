#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace coop {

// The numbers from one to before another.
class Numbers {
 public:
  class Iterator {
   public:
    explicit Iterator(std::uint32_t number) : number_(number) {}
    std::uint32_t operator*() const { return number_; }
    Iterator& operator++() {
      ++number_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    std::uint32_t number_;
  };

  Numbers(std::uint32_t first, std::uint32_t end) : first_(first), end_(end) {}
  [[nodiscard]] Iterator begin() const { return Iterator(first_); }
  [[nodiscard]] Iterator end() const { return Iterator(end_); }

 private:
  std::uint32_t first_;
  std::uint32_t end_;
};

// A list of lists in two arrays. Filled in order: items are added to the last list until it is closed.
template <typename T>
class Lists {
 public:
  void add(T item) { items_.push_back(item); }
  void close() { ends_.push_back(static_cast<std::uint32_t>(items_.size())); }
  [[nodiscard]] std::size_t size() const { return ends_.size() - 1; }
  [[nodiscard]] std::span<const T> operator[](std::size_t list) const {
    return {items_.data() + ends_[list], items_.data() + ends_[list + 1]};
  }

  // From (list, item) pairs in any order; each list has its items in the order of the pairs.
  static Lists sorted(std::size_t lists, std::span<const std::pair<std::uint32_t, T>> pairs) {
    Lists result;
    result.ends_.assign(lists + 1, 0);
    result.items_.resize(pairs.size());
    for (const auto& [list, item] : pairs) ++result.ends_[list + 1];
    for (std::size_t list = 0; list < lists; ++list) result.ends_[list + 1] += result.ends_[list];
    std::vector<std::uint32_t> next(result.ends_.begin(), result.ends_.end() - 1);
    for (const auto& [list, item] : pairs) result.items_[next[list]++] = item;
    return result;
  }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> ends_{0};
};

}  // namespace coop
