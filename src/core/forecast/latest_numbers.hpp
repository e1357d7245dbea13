#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace coop {

// The latest number that each mark had. Marks are hashes already, and nothing is ever taken out: a flat table, so that
// to look one up is to go to one place in memory.
class LatestNumbers {
 public:
  // Of more marks than `most` all are forgotten.
  explicit LatestNumbers(std::size_t most) : most_(most) {}

  // The number that the mark had until now; none: it is new.
  std::optional<std::uint64_t> replace(std::uint64_t mark, std::uint64_t number) {
    if (count_ >= most_) *this = LatestNumbers(most_);
    if (2 * count_ >= entries_.size()) grow();
    Entry& entry = find(mark);
    if (!entry.is_used) {
      entry = {.mark = mark, .number = number, .is_used = true};
      ++count_;
      return std::nullopt;
    }
    return std::exchange(entry.number, number);
  }

 private:
  struct Entry {
    std::uint64_t mark = 0;
    std::uint64_t number = 0;
    bool is_used = false;
  };

  // Its own, or the free one that would be; at most half of them are in use.
  Entry& find(std::uint64_t mark) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t i = static_cast<std::size_t>(mark) & mask;
    while (entries_[i].is_used && entries_[i].mark != mark) i = (i + 1) & mask;
    return entries_[i];
  }

  void grow() {
    std::vector<Entry> before(entries_.empty() ? kFewest : 2 * entries_.size());
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (entry.is_used) find(entry.mark) = entry;
    }
  }

  static constexpr std::size_t kFewest = 256;  // a power of two
  std::size_t most_;
  std::size_t count_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace coop
