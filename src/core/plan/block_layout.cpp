#include "core/plan/block_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace coop {
namespace {

// Layouts that are tried for each order: this many blocks in all, but at least one and at most forty layouts.
constexpr std::size_t kBlocksInTries = 20'000;
constexpr std::size_t kLeastTries = 1;
constexpr std::size_t kMostTries = 40;

// Without branches: nobody can predict which do.
bool meet(const BlockLife& block, Moment from, Moment until) {
  const auto is = [](bool condition) { return static_cast<unsigned>(condition); };
  const unsigned in_life = is(from <= block.until) & is(block.from <= until);
  return (in_life | is(from < block.early_end)) != 0;
}

// Moments that it is there.
Bytes life_of(const BlockLife& block) {
  return Bytes{block.until} - block.from + 1 + block.early_end;
}

}  // namespace

BlockLayout::BlockLayout(std::span<const ByteRange> held, Bytes budget) : budget_(budget) {
  std::vector<ByteRange> sorted(held.begin(), held.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  for (const ByteRange& range : sorted) {
    if (range.begin >= range.end) continue;
    const Bytes begin = range.begin / kBlockAlignment * kBlockAlignment;
    const Bytes end = whole_grains(range.end);
    if (!held_.empty() && begin <= held_.back().end) {
      held_.back().end = std::max(held_.back().end, end);
    } else {
      held_.push_back({begin, end, 0, std::numeric_limits<Moment>::max()});
    }
  }
}

Bytes BlockLayout::end_of_reserve(Bytes reserve) const {
  Bytes end = 0;
  for (const Placed& held : held_) {
    const Bytes hole = held.begin - end;
    if (hole >= reserve) break;
    reserve -= hole;
    end = held.end;
  }
  return end + reserve;
}

double BlockLayout::key_of(const BlockLife& block, Order by, std::uint32_t stuck_out) {
  const auto bytes = static_cast<double>(block.bytes);
  const auto moments = static_cast<double>(life_of(block));
  switch (by) {
    case Order::kSize:
      return bytes;
    case Order::kSizeTimesLife:
      return bytes * moments;
    case Order::kSizeMoreEachTime:
      return std::ldexp(bytes, static_cast<int>(stuck_out));
    case Order::kBothMoreEachTime:
      return std::ldexp(bytes * std::sqrt(moments), static_cast<int>(stuck_out));
  }
  return bytes;
}

Layout BlockLayout::lay_out(std::span<const BlockLife> blocks, Bytes reserve) {
  std::vector<std::uint32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  keys_.resize(blocks.size());
  const Bytes lowest = end_of_reserve(reserve);
  const std::size_t tries =
      std::clamp(kBlocksInTries / (blocks.size() + 1), kLeastTries, kMostTries);
  Layout best{.height = std::numeric_limits<Bytes>::max()};
  Layout layout;
  for (const Order by : kOrders) {
    std::vector<std::uint32_t> stuck_out(blocks.size());  // times
    const bool is_first_at_once = by == Order::kSize || by == Order::kSizeTimesLife;
    const auto goes_first = [&](std::uint32_t a, std::uint32_t b) {
      if (is_first_at_once && stuck_out[a] != stuck_out[b]) return stuck_out[a] > stuck_out[b];
      if (keys_[a] != keys_[b]) return keys_[a] > keys_[b];
      const Bytes left = life_of(blocks[a]);
      const Bytes right = life_of(blocks[b]);
      return left != right ? left > right : a < b;
    };
    for (std::size_t i = 0; i < tries; ++i) {
      for (std::uint32_t block = 0; block < blocks.size(); ++block) {
        keys_[block] = key_of(blocks[block], by, stuck_out[block]);
      }
      std::sort(order.begin(), order.end(), goes_first);
      place_all(blocks, order, lowest, layout);
      if (layout.height < best.height) best = layout;
      if (best.height <= budget_) return best;
      for (const std::uint32_t block : order) {
        if (layout.offsets[block] + blocks[block].bytes > budget_) ++stuck_out[block];
      }
    }
  }
  return best;
}

void BlockLayout::place_all(std::span<const BlockLife> blocks, std::span<const std::uint32_t> order,
                            Bytes lowest, Layout& layout) {
  placed_ = held_;
  layout.offsets.resize(blocks.size());
  layout.height = lowest;
  for (const std::uint32_t i : order) {
    const BlockLife& block = blocks[i];
    const Bytes begin = find_place(block, lowest);
    const Bytes end = begin + block.bytes;
    layout.offsets[i] = begin;
    layout.height = std::max(layout.height, end);
    add({begin, end, block.from, block.until});
    if (block.early_end > 0) add({begin, end, 0, block.early_end - 1});
  }
}

Bytes BlockLayout::find_place(const BlockLife& block, Bytes lowest) const {
  Bytes begin = lowest;
  for (const Placed& other : placed_) {
    if (other.begin >= begin + block.bytes) break;
    begin = std::max(begin, meet(block, other.from, other.until) ? other.end : begin);
  }
  return begin;
}

void BlockLayout::add(const Placed& placed) {
  const auto at =
      std::upper_bound(placed_.begin(), placed_.end(), placed,
                       [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  placed_.insert(at, placed);
}

}  // namespace coop
