#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/handle.hpp"

namespace coop {

// Things of one kind, each with a name that stays good until it is erased. Adding is amortised O(1) and
// may throw, with nothing changed; erasing neither throws nor allocates. References are good until the
// next add.
template <typename T, typename Tag = T>
class Table {
 public:
  using Id = Handle<Tag>;

  template <typename... Args>
  Id add(Args&&... args) {
    if (unused_.empty()) grow();
    const std::uint32_t index = unused_.back();
    Entry& entry = entries_[index];
    entry.value = T{std::forward<Args>(args)...};
    unused_.pop_back();
    entry.is_used = true;
    return {index, entry.generation};
  }

  // Makes the next `n` adds certain to succeed.
  void reserve_free(std::size_t n) {
    while (unused_.size() < n) grow();
  }

  void erase(Id id) noexcept {
    COOP_CHECK(contains(id));
    Entry& entry = entries_[id.index()];
    entry.is_used = false;
    ++entry.generation;
    unused_.push_back(id.index());
  }

  [[nodiscard]] bool contains(Id id) const noexcept {
    return id.index() < entries_.size() && entries_[id.index()].is_used &&
           entries_[id.index()].generation == id.generation();
  }

  [[nodiscard]] T& operator[](Id id) {
    COOP_CHECK(contains(id));
    return entries_[id.index()].value;
  }
  [[nodiscard]] const T& operator[](Id id) const {
    COOP_CHECK(contains(id));
    return entries_[id.index()].value;
  }

  [[nodiscard]] std::size_t size() const { return entries_.size() - unused_.size(); }

  // Calls fn(Id, T&) for everything there is, in the order of places.
  template <typename Function>
  void for_each(Function&& fn) {
    for (std::uint32_t index = 0; index < entries_.size(); ++index) {
      Entry& entry = entries_[index];
      if (entry.is_used) fn(Id{index, entry.generation}, entry.value);
    }
  }
  template <typename Function>
  void for_each(Function&& fn) const {
    const_cast<Table*>(this)->for_each(
        [&](Id id, T& value) { fn(id, static_cast<const T&>(value)); });
  }

 private:
  struct Entry {
    T value{};
    std::uint32_t generation = 0;
    bool is_used = false;
  };

  // Room for one more, and for its name when it is erased.
  void grow() {
    if (unused_.capacity() <= entries_.size()) unused_.reserve(2 * entries_.size() + 16);
    entries_.emplace_back();
    unused_.push_back(static_cast<std::uint32_t>(entries_.size() - 1));
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace coop
