#include "core/plan/block_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace coop {
namespace {

// Layouts that are tried for each order: this many blocks in all, but at least one and at most forty layouts.
constexpr std::size_t kBlocksInTries = 20'000;
constexpr std::size_t kLeastTries = 1;
constexpr std::size_t kMostTries = 40;
// Where there are more blocks than that, each layout takes long, and only these orders are tried.
constexpr std::size_t kFewOrders = 4;

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
      held_.push_back({begin, end});
    }
  }
  for (const ByteRange& range : held_) {
    held_blocks_.add({range.begin, range.end, 0, std::numeric_limits<Moment>::max()});
  }
}

std::span<const Bytes> BlockLayout::least(std::span<const BlockLife> blocks, Bytes reserve) {
  add_all_up(blocks);
  Bytes always = reserve;
  for (const ByteRange& held : held_) always += held.end - held.begin;
  least_ = all_;
  for (Bytes& bytes : least_) bytes += always;
  return least_;
}

Bytes BlockLayout::end_of_reserve(Bytes reserve) const {
  Bytes end = 0;
  for (const ByteRange& held : held_) {
    const Bytes hole = held.begin - end;
    if (hole >= reserve) break;
    reserve -= hole;
    end = held.end;
  }
  return end + reserve;
}

double BlockLayout::size_of(const BlockLife& block, Order by, std::uint32_t stuck_out) {
  const auto bytes = static_cast<double>(block.bytes);
  const auto moments = static_cast<double>(life_of(block));
  switch (by) {
    case Order::kSize:
      return bytes;
    case Order::kSizeTimesLife:
      return bytes * moments;
    case Order::kSizeMoreEachTime:
      return std::ldexp(bytes, static_cast<int>(stuck_out));
  }
  return bytes;
}

Layout BlockLayout::lay_out(std::span<const BlockLife> blocks, Bytes reserve) {
  order_.resize(blocks.size());
  std::iota(order_.begin(), order_.end(), 0U);
  const Bytes lowest = end_of_reserve(reserve);
  const std::size_t tries =
      std::clamp(kBlocksInTries / (blocks.size() + 1), kLeastTries, kMostTries);
  add_all_up(blocks);
  Layout best{.height = std::numeric_limits<Bytes>::max()};
  Layout layout;
  const std::size_t most_orders = blocks.size() < kBlocksInTries ? kOrders.size() : kFewOrders;
  for (const Orders& orders : std::span(kOrders).first(most_orders)) {
    stuck_out_.assign(blocks.size(), 0);
    FullMoments full = moments_of(orders);
    for (std::size_t i = 0; i < tries; ++i) {
      sort(blocks, orders.then, full);
      place_all(blocks, lowest, layout);
      if (layout.height < best.height) best = layout;
      if (best.height <= budget_) return best;
      for (const std::uint32_t block : order_) {
        if (sticks_out(blocks[block], layout.offsets[block])) ++stuck_out_[block];
      }
      if (orders.full == Full::kAnotherEachTime) {
        full.first = where_most_sticks_out(blocks, layout);
      } else if (full.first && !full.second) {
        full.second = where_most_sticks_out(blocks, layout);
      }
    }
  }
  return best;
}

BlockLayout::FullMoments BlockLayout::moments_of(const Orders& orders) const {
  if (orders.full == Full::kNone) return {};
  const Bytes most = *std::max_element(all_.begin(), all_.end());
  const Bytes full = most - std::min(most, budget_ / orders.nearly);
  const auto is_full = [&](Bytes bytes) { return bytes >= full; };
  const auto first = std::find_if(all_.begin(), all_.end(), is_full);
  const auto last = std::find_if(all_.rbegin(), all_.rend(), is_full).base() - 1;
  return {.first = static_cast<Moment>((orders.full == Full::kFirst ? first : last) - all_.begin()),
          .second = std::nullopt};
}

void BlockLayout::sort(std::span<const BlockLife> blocks, Order by, const FullMoments& full) {
  keys_.resize(blocks.size());
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    keys_[i] = key_of(blocks[i], by, stuck_out_[i], full);
  }
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Key& left = keys_[a];
    const Key& right = keys_[b];
    if (left.rank != right.rank) return left.rank > right.rank;
    if (left.size != right.size) return left.size > right.size;
    return left.life != right.life ? left.life > right.life : a < b;
  });
}

BlockLayout::Key BlockLayout::key_of(const BlockLife& block, Order by, std::uint32_t stuck_out,
                                     const FullMoments& full) const {
  constexpr auto kFirst = std::numeric_limits<std::uint32_t>::max();
  const Bytes life = life_of(block);
  if (full.first && meet(block, *full.first, *full.first)) return {.rank = kFirst, .life = life};
  if (full.second && meet(block, *full.second, *full.second)) {
    // Beneath the stairs that lead to the first moment, from this side or from that.
    const double steps = *full.second < *full.first ? -static_cast<double>(block.until)
                                                    : static_cast<double>(block.from);
    return {.rank = kFirst - 1, .size = steps, .life = life};
  }
  const bool is_first_at_once = by == Order::kSize || by == Order::kSizeTimesLife;
  return {.rank = is_first_at_once ? stuck_out : 0,
          .size = size_of(block, by, stuck_out),
          .life = life};
}

// --- moments ---

template <typename Counts>
void BlockLayout::add_up(std::span<const BlockLife> blocks, const Counts& counts) {
  there_.assign(there_.size(), 0);
  // What comes and what goes; a sum over those before is never negative, and wraps around on the way there and back.
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    const BlockLife& block = blocks[i];
    if (!counts(i)) continue;
    const auto add = [&](Moment from, Moment end) {
      there_[from] += block.bytes;
      there_[end] -= block.bytes;
    };
    const Moment end = block.until + 1;
    if (block.early_end >= block.from) {  // one life
      add(0, std::max(end, block.early_end));
    } else {
      add(block.from, end);
      add(0, block.early_end);
    }
  }
  std::partial_sum(there_.begin(), there_.end(), there_.begin());
}

void BlockLayout::add_all_up(std::span<const BlockLife> blocks) {
  Moment end = 0;
  for (const BlockLife& block : blocks) end = std::max({end, block.until + 1, block.early_end});
  there_.resize(std::size_t{end} + 1);
  add_up(blocks, [](std::uint32_t) { return true; });
  all_ = there_;
}

// Of moments with as much the one that is fuller.
Moment BlockLayout::where_most_sticks_out(std::span<const BlockLife> blocks, const Layout& layout) {
  add_up(blocks, [&](std::uint32_t i) { return sticks_out(blocks[i], layout.offsets[i]); });
  Moment best = 0;
  for (Moment moment = 1; moment < there_.size(); ++moment) {
    if (std::tie(there_[moment], all_[moment]) > std::tie(there_[best], all_[best])) best = moment;
  }
  return best;
}

// --- places ---

bool BlockLayout::sticks_out(const BlockLife& block, Bytes offset) const {
  return offset + block.bytes > budget_;
}

void BlockLayout::place_all(std::span<const BlockLife> blocks, Bytes lowest, Layout& layout) {
  placed_ = held_blocks_;
  layout.offsets.resize(blocks.size());
  layout.height = lowest;
  for (const std::uint32_t i : order_) {
    const BlockLife& block = blocks[i];
    const Bytes begin = placed_.lowest_place(block, lowest);
    const Bytes end = begin + block.bytes;
    layout.offsets[i] = begin;
    layout.height = std::max(layout.height, end);
    placed_.add({begin, end, block.from, block.until});
    if (block.early_end > 0) placed_.add({begin, end, 0, block.early_end - 1});
  }
}

}  // namespace coop
