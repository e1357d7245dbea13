#include "core/pool/address_order.hpp"

#include <algorithm>
#include <bit>

#include "core/base/check.hpp"
#include "core/pool/chunk_inline.hpp"

namespace coop {
namespace {

// Chunks are joined only when the result leaves room to grow, so that a block that comes and goes
// at the border does not split and join for ever.
constexpr int kSparse = Chunk::kCapacity / 8;
constexpr int kJoined = Chunk::kCapacity * 3 / 4;

}  // namespace

AddressOrder::AddressOrder(Grains total) : total_(total) {
  COOP_CHECK(total > 0);
  storage_.push_back(std::make_unique<Chunk>());
  Chunk& first = *storage_.back();
  first.count = 1;
  first.set_end(total);
  first.make_hole(0);
  directory_.push_back(&first);
  bounds_.reserve(1);
  bounds_.insert(0, total);
}

// --- looking up ---

AddressOrder::Place AddressOrder::leftmost_hole(Grains at_least, Grains from) noexcept {
  if (from >= total_) return {};
  std::size_t first = 0;
  if (from > 0) {
    // The chunk in which the search starts may have holes before `from`, which count in part or
    // not.
    const Place start = piece_at(from);
    for (const int slot : SlotsOf(start.chunk->holes)) {
      const Extent hole = start.chunk->extent(slot);
      if (hole.end - std::max(hole.begin, from) >= at_least) return {start.chunk, slot};
    }
    first = start.chunk->directory_slot + std::size_t{1};
  }
  while ((first = bounds_.first(at_least, first)) != HoleBounds::kNone) {
    Chunk* const chunk = directory_[first];
    Grains largest = 0;
    for (const int slot : SlotsOf(chunk->holes)) {
      const Grains size = chunk->extent(slot).size();
      if (size >= at_least) return {chunk, slot};
      largest = std::max(largest, size);
    }
    bounds_.lower(first++, largest);
  }
  return {};
}

AddressOrder::Place AddressOrder::rightmost_hole(Grains at_least) noexcept {
  std::size_t last = 0;
  while ((last = bounds_.last(at_least)) != HoleBounds::kNone) {
    Chunk* const chunk = directory_[last];
    Grains largest = 0;
    std::uint64_t bits = chunk->holes;
    while (bits != 0) {
      const int slot = 63 - std::countl_zero(bits);
      const Grains size = chunk->extent(slot).size();
      if (size >= at_least) return {chunk, slot};
      largest = std::max(largest, size);
      bits &= Chunk::low_bits(slot);
    }
    bounds_.lower(last, largest);
  }
  return {};
}

AddressOrder::Place AddressOrder::piece_at(Grains position) const {
  COOP_CHECK(position >= 0 && position < total_);
  const auto after = std::upper_bound(directory_.begin(), directory_.end(), position,
                                      [](Grains p, const Chunk* c) { return p < c->begin[0]; });
  Chunk* const chunk = *(after - 1);
  const auto first = chunk->begin.begin();
  const auto piece = std::upper_bound(first, first + chunk->count, position);
  return {chunk, static_cast<int>(piece - first) - 1};
}

AddressOrder::Place AddressOrder::place_of(BlockIndex block) const {
  Chunk* const chunk = chunk_of_[block];
  return {chunk, chunk->slot_of(block)};
}

AddressOrder::Place AddressOrder::left_neighbour(Place place) const {
  if (place.slot > 0) return {place.chunk, place.slot - 1};
  if (place.chunk->directory_slot == 0) return {};
  Chunk* const before = directory_[place.chunk->directory_slot - 1];
  return {before, before->count - 1};
}

Grains AddressOrder::largest_hole() const {
  Grains largest = 0;
  for (const Chunk* chunk : directory_) largest = std::max(largest, chunk->largest_hole());
  return largest;
}

// --- changing ---

void AddressOrder::cut_hole(Place hole, Grains at) {
  hole.chunk->insert_hole(hole.slot + 1, at);
  shifted_ += static_cast<std::uint64_t>(hole.chunk->count - hole.slot - 1);
  ++pieces_;
}

void AddressOrder::take(Place hole, Extent extent, BlockIndex block, const BlockFacts& facts) {
  const Extent whole = hole.extent();
  COOP_CHECK(hole.is_hole() && extent.size() > 0);
  COOP_CHECK(whole.begin <= extent.begin && extent.end <= whole.end);
  if (block >= chunk_of_.size()) {
    chunk_of_.resize(std::max<std::size_t>(std::size_t{block} + 1, chunk_of_.size() * 2));
  }
  if (hole.chunk->count + 2 > Chunk::kCapacity) {  // a hole becomes three pieces at the most
    split(*hole.chunk, hole.slot);
    hole = piece_at(whole.begin);
  }
  if (extent.end < whole.end) cut_hole(hole, extent.end);
  if (extent.begin > whole.begin) {
    cut_hole(hole, extent.begin);
    ++hole.slot;
  }
  hole.chunk->hold(hole.slot, block, facts);
  chunk_of_[block] = hole.chunk;
}

void AddressOrder::swallow_right_hole(Place hole, Joined& joined) noexcept {
  Chunk& chunk = *hole.chunk;
  Chunk* owner = &chunk;
  int slot = hole.slot + 1;
  if (slot == chunk.count) {
    if (chunk.directory_slot + std::size_t{1} == directory_.size()) return;
    owner = directory_[chunk.directory_slot + std::size_t{1}];
    slot = 0;
  }
  if (!owner->is_hole(slot)) return;
  const Extent swallowed = owner->extent(slot);
  owner->erase(slot);
  shifted_ += static_cast<std::uint64_t>(owner->count - slot);
  --pieces_;
  joined.right = swallowed;
  if (owner == &chunk) return;
  chunk.set_end(swallowed.end);
  if (owner->count == 0) remove_chunk(*owner);
}

AddressOrder::Joined AddressOrder::release(BlockIndex block) noexcept {
  Place place = place_of(block);
  chunk_of_[block] = nullptr;
  place.chunk->make_hole(place.slot);
  Joined joined;
  swallow_right_hole(place, joined);
  if (const Place left = left_neighbour(place); left && left.is_hole()) {
    const auto right = joined.right;
    joined.left = left.extent();
    Chunk* const shrunk = place.chunk;
    place = left;
    swallow_right_hole(place, joined);
    joined.right = right;  // the block itself was swallowed last
    if (shrunk != place.chunk && shrunk->count > 0) join_if_sparse(*shrunk);
  }
  joined.hole = place.extent();
  bounds_.raise(place.chunk->directory_slot, joined.hole.size());
  join_if_sparse(*place.chunk);
  return joined;
}

void AddressOrder::trade_places(BlockIndex one, BlockIndex other) noexcept {
  const Place first = place_of(one);
  const Place second = place_of(other);
  COOP_CHECK(first.extent().size() == second.extent().size());
  const BlockFacts facts = first.chunk->facts(first.slot);
  first.chunk->hold(first.slot, other, second.chunk->facts(second.slot));
  second.chunk->hold(second.slot, one, facts);
  std::swap(chunk_of_[one], chunk_of_[other]);
}

AddressOrder::Joined AddressOrder::slide_left(BlockIndex block) noexcept {
  const Place place = place_of(block);
  const Place left = left_neighbour(place);
  COOP_CHECK(left && left.is_hole());
  Joined joined;
  joined.left = left.extent();
  const BlockFacts facts = place.chunk->facts(place.slot);
  // The two pieces trade places; only the border between them moves.
  const Grains border = left.extent().begin + place.extent().size();
  left.chunk->begin[static_cast<std::size_t>(left.slot) + 1] = border;
  place.chunk->begin[static_cast<std::size_t>(place.slot)] = border;
  left.chunk->hold(left.slot, block, facts);
  chunk_of_[block] = left.chunk;
  place.chunk->make_hole(place.slot);
  swallow_right_hole(place, joined);
  joined.hole = place.extent();
  bounds_.raise(place.chunk->directory_slot, joined.hole.size());
  return joined;
}

void AddressOrder::set_facts(BlockIndex block, const BlockFacts& facts) noexcept {
  const Place place = place_of(block);
  place.chunk->set_facts(place.slot, facts);
}

// --- chunks and their directory ---

void AddressOrder::split(Chunk& chunk, int growing_at) {
  // Whatever can throw comes first. Freeing never throws because room for it is reserved here.
  if (spare_.empty()) {
    spare_.reserve(storage_.size() + 1);
    storage_.push_back(std::make_unique<Chunk>());
    spare_.push_back(storage_.back().get());
  }
  if (directory_.size() == directory_.capacity()) directory_.reserve(directory_.size() * 2);
  bounds_.reserve(directory_.capacity());

  Chunk& upper = *spare_.back();
  spare_.pop_back();
  // Pieces often come one after the other at the border of the free space. The smaller part goes to
  // where the chunk is growing, so that what is left behind is not half empty.
  move_tail(chunk, std::clamp(growing_at, kSparse, Chunk::kCapacity - kSparse), upper);
  const std::size_t after = chunk.directory_slot + std::size_t{1};
  directory_.insert(directory_.begin() + static_cast<std::ptrdiff_t>(after), &upper);
  bounds_.insert(after, upper.largest_hole());
  bounds_.lower(chunk.directory_slot, chunk.largest_hole());
  reindex_directory(after);
}

void AddressOrder::join_if_sparse(Chunk& chunk) noexcept {
  if (chunk.count >= kSparse) return;
  const std::size_t slot = chunk.directory_slot;
  if (slot + 1 < directory_.size() && chunk.count + directory_[slot + 1]->count <= kJoined) {
    join_with_next(chunk);
  } else if (slot > 0 && chunk.count + directory_[slot - 1]->count <= kJoined) {
    join_with_next(*directory_[slot - 1]);
  }
}

void AddressOrder::join_with_next(Chunk& chunk) noexcept {
  const std::size_t slot = chunk.directory_slot;
  Chunk& next = *directory_[slot + 1];
  move_tail(next, 0, chunk);
  bounds_.raise(slot, bounds_.of(slot + 1));
  remove_chunk(next);
}

void AddressOrder::remove_chunk(Chunk& chunk) noexcept {
  const std::size_t slot = chunk.directory_slot;
  directory_.erase(directory_.begin() + static_cast<std::ptrdiff_t>(slot));
  bounds_.erase(slot);
  spare_.push_back(&chunk);
  reindex_directory(slot);
}

void AddressOrder::move_tail(Chunk& from, int first, Chunk& to) noexcept {
  const auto target = static_cast<std::size_t>(to.count);
  to.take_tail(from, first);
  for (std::size_t i = target; i < static_cast<std::size_t>(to.count); ++i) {
    if (to.block[i] != kNoBlock) chunk_of_[to.block[i]] = &to;
  }
  shifted_ += static_cast<std::uint64_t>(to.count) - target;
}

void AddressOrder::reindex_directory(std::size_t first) noexcept {
  for (std::size_t slot = first; slot < directory_.size(); ++slot) {
    directory_[slot]->directory_slot = static_cast<std::uint32_t>(slot);
  }
}

// --- checking ---

void AddressOrder::validate() const {
  Grains position = 0;
  std::size_t pieces = 0;
  bool after_hole = false;
  for (std::size_t slot = 0; slot < directory_.size(); ++slot) {
    const Chunk& chunk = *directory_[slot];
    COOP_CHECK(chunk.count > 0 && chunk.count <= Chunk::kCapacity);
    COOP_CHECK(chunk.directory_slot == slot);
    COOP_CHECK(((chunk.holes | chunk.fixed) & ~Chunk::low_bits(chunk.count)) == 0);
    COOP_CHECK((chunk.holes & chunk.fixed) == 0);
    for (int i = 0; i < chunk.count; ++i) {
      const Extent piece = chunk.extent(i);
      const bool is_evictable = (chunk.evictable() >> i & 1U) != 0;
      COOP_CHECK(piece.begin == position && piece.size() > 0);
      COOP_CHECK(!(after_hole && chunk.is_hole(i)));
      COOP_CHECK(chunk.is_hole(i) == (chunk.block_at(i) == kNoBlock));
      COOP_CHECK(chunk.is_hole(i) || chunk_of_[chunk.block_at(i)] == &chunk);
      COOP_CHECK((chunk.facts(i).cost > 0) == is_evictable);
      after_hole = chunk.is_hole(i);
      position = piece.end;
    }
    for (auto i = static_cast<std::size_t>(chunk.count); i < Chunk::kCapacity; ++i) {
      COOP_CHECK(chunk.cost[i] == 0 && chunk.block[i] == kNoBlock);
    }
    COOP_CHECK(bounds_.of(slot) >= chunk.largest_hole());
    pieces += static_cast<std::size_t>(chunk.count);
  }
  COOP_CHECK(position == total_);
  COOP_CHECK(pieces == pieces_);
  bounds_.validate();
}

}  // namespace coop
