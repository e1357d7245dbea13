#include "core/pool/address_order.hpp"

#include <algorithm>
#include <bit>

#include "core/base/check.hpp"

namespace coop {
namespace {

// Directory entries under one entry of group_hole_.
constexpr std::size_t kGroup = 64;

// Chunks are joined only when the result leaves room to grow, so that a block that comes and goes
// at the border does not split and join for ever.
constexpr int kSparse = Chunk::kCapacity / 4;
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
  largest_hole_.push_back(total);
  group_hole_.push_back(total);
}

// --- looking up ---

std::optional<std::size_t> AddressOrder::first_chunk_with(Grains at_least, std::size_t from) const {
  std::size_t slot = from;
  while (slot < directory_.size()) {
    std::size_t group = slot / kGroup;
    if (slot % kGroup == 0) {
      while (group < group_hole_.size() && group_hole_[group] < at_least) ++group;
      slot = group * kGroup;
    }
    const std::size_t stop = std::min(directory_.size(), (group + 1) * kGroup);
    for (; slot < stop; ++slot) {
      if (largest_hole_[slot] >= at_least) return slot;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> AddressOrder::last_chunk_with(Grains at_least) const {
  for (std::size_t group = group_hole_.size(); group-- > 0;) {
    if (group_hole_[group] < at_least) continue;
    const std::size_t first = group * kGroup;
    for (std::size_t slot = std::min(directory_.size(), first + kGroup); slot-- > first;) {
      if (largest_hole_[slot] >= at_least) return slot;
    }
  }
  return std::nullopt;
}

std::optional<AddressOrder::Place> AddressOrder::leftmost_hole(Grains at_least, Grains from) const {
  if (from >= total_) return std::nullopt;
  std::size_t first = 0;
  if (from > 0) {
    // The chunk in which the search starts may have holes before `from`, which count in part or
    // not.
    const Place start = piece_at(from);
    for (const int slot : SlotsOf(start.chunk->holes)) {
      const Extent hole = start.chunk->extent(slot);
      if (hole.end - std::max(hole.begin, from) >= at_least) return Place{start.chunk, slot};
    }
    first = start.chunk->directory_slot + std::size_t{1};
  }
  const auto found = first_chunk_with(at_least, first);
  if (!found) return std::nullopt;
  Chunk* const chunk = directory_[*found];
  for (const int slot : SlotsOf(chunk->holes)) {
    if (chunk->extent(slot).size() >= at_least) return Place{chunk, slot};
  }
  fail_check("the directory is true", __FILE__, __LINE__);
}

std::optional<AddressOrder::Place> AddressOrder::rightmost_hole(Grains at_least) const {
  const auto found = last_chunk_with(at_least);
  if (!found) return std::nullopt;
  Chunk* const chunk = directory_[*found];
  std::uint64_t bits = chunk->holes;
  while (bits != 0) {
    const int slot = 63 - std::countl_zero(bits);
    if (chunk->extent(slot).size() >= at_least) return Place{chunk, slot};
    bits &= Chunk::low_bits(slot);
  }
  fail_check("the directory is true", __FILE__, __LINE__);
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

std::optional<AddressOrder::Place> AddressOrder::left_neighbour(Place place) const {
  if (place.slot > 0) return Place{place.chunk, place.slot - 1};
  if (place.chunk->directory_slot == 0) return std::nullopt;
  Chunk* const before = directory_[place.chunk->directory_slot - 1];
  return Place{before, before->count - 1};
}

Grains AddressOrder::largest_hole() const {
  return *std::max_element(group_hole_.begin(), group_hole_.end());
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
    split(*hole.chunk);
    hole = piece_at(whole.begin);
  }
  if (extent.end < whole.end) cut_hole(hole, extent.end);
  if (extent.begin > whole.begin) {
    cut_hole(hole, extent.begin);
    ++hole.slot;
  }
  hole.chunk->hold(hole.slot, block, facts);
  chunk_of_[block] = hole.chunk;
  note_hole_lost(*hole.chunk, whole.size());
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
  if (owner->count == 0) {
    remove_chunk(*owner);
  } else {
    note_hole_lost(*owner, swallowed.size());
  }
}

AddressOrder::Joined AddressOrder::release(BlockIndex block) noexcept {
  Place place = place_of(block);
  chunk_of_[block] = nullptr;
  place.chunk->make_hole(place.slot);
  Joined joined;
  swallow_right_hole(place, joined);
  set_largest_hole(*place.chunk,
                   std::max(largest_hole_[place.chunk->directory_slot], place.extent().size()));
  if (const auto left = left_neighbour(place); left && left->is_hole()) {
    const auto right = joined.right;
    joined.left = left->extent();
    Chunk* const shrunk = place.chunk;
    place = *left;
    swallow_right_hole(place, joined);
    joined.right = right;  // the block itself was swallowed last
    set_largest_hole(*place.chunk,
                     std::max(largest_hole_[place.chunk->directory_slot], place.extent().size()));
    if (shrunk != place.chunk && shrunk->count > 0) join_if_sparse(*shrunk);
  }
  joined.hole = place.extent();
  join_if_sparse(*place.chunk);
  return joined;
}

AddressOrder::Joined AddressOrder::slide_left(BlockIndex block) noexcept {
  const Place place = place_of(block);
  const auto left = left_neighbour(place);
  COOP_CHECK(left && left->is_hole());
  Joined joined;
  joined.left = left->extent();
  const BlockFacts facts = place.chunk->facts(place.slot);
  // The two pieces trade places; only the border between them moves.
  const Grains border = left->extent().begin + place.extent().size();
  left->chunk->begin[static_cast<std::size_t>(left->slot) + 1] = border;
  place.chunk->begin[static_cast<std::size_t>(place.slot)] = border;
  left->chunk->hold(left->slot, block, facts);
  chunk_of_[block] = left->chunk;
  place.chunk->make_hole(place.slot);
  swallow_right_hole(place, joined);
  joined.hole = place.extent();
  set_largest_hole(*left->chunk, left->chunk->largest_hole());
  set_largest_hole(*place.chunk, place.chunk->largest_hole());
  return joined;
}

void AddressOrder::set_facts(BlockIndex block, const BlockFacts& facts) noexcept {
  const Place place = place_of(block);
  place.chunk->set_facts(place.slot, facts);
}

// --- chunks and their directory ---

void AddressOrder::split(Chunk& chunk) {
  // Whatever can throw comes first. Freeing never throws because room for it is reserved here.
  if (spare_.empty()) {
    spare_.reserve(storage_.size() + 1);
    storage_.push_back(std::make_unique<Chunk>());
    spare_.push_back(storage_.back().get());
  }
  if (directory_.size() == directory_.capacity()) directory_.reserve(directory_.size() * 2);
  largest_hole_.reserve(directory_.capacity());
  group_hole_.reserve(directory_.capacity() / kGroup + 1);

  Chunk& upper = *spare_.back();
  spare_.pop_back();
  move_tail(chunk, Chunk::kCapacity / 2, upper);
  const std::size_t slot = chunk.directory_slot;
  const auto after = static_cast<std::ptrdiff_t>(slot) + 1;
  directory_.insert(directory_.begin() + after, &upper);
  largest_hole_[slot] = chunk.largest_hole();
  largest_hole_.insert(largest_hole_.begin() + after, upper.largest_hole());
  reindex_directory(slot);
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
  largest_hole_[slot] = std::max(largest_hole_[slot], largest_hole_[slot + 1]);
  remove_chunk(next);
}

void AddressOrder::remove_chunk(Chunk& chunk) noexcept {
  const std::size_t slot = chunk.directory_slot;
  directory_.erase(directory_.begin() + static_cast<std::ptrdiff_t>(slot));
  largest_hole_.erase(largest_hole_.begin() + static_cast<std::ptrdiff_t>(slot));
  spare_.push_back(&chunk);
  reindex_directory(slot == 0 ? 0 : slot - 1);
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
  group_hole_.resize((directory_.size() + kGroup - 1) / kGroup);
  for (std::size_t group = first / kGroup; group < group_hole_.size(); ++group) {
    group_hole_[group] = largest_in_group(group);
  }
}

Grains AddressOrder::largest_in_group(std::size_t group) const noexcept {
  const std::size_t stop = std::min(largest_hole_.size(), (group + 1) * kGroup);
  Grains largest = 0;
  for (std::size_t slot = group * kGroup; slot < stop; ++slot) {
    largest = std::max(largest, largest_hole_[slot]);
  }
  return largest;
}

void AddressOrder::note_hole_lost(Chunk& chunk, Grains size) noexcept {
  if (largest_hole_[chunk.directory_slot] == size) set_largest_hole(chunk, chunk.largest_hole());
}

void AddressOrder::set_largest_hole(Chunk& chunk, Grains largest) noexcept {
  const std::size_t slot = chunk.directory_slot;
  const Grains before = largest_hole_[slot];
  if (before == largest) return;
  largest_hole_[slot] = largest;
  Grains& group = group_hole_[slot / kGroup];
  if (largest > group) {
    group = largest;
  } else if (before == group) {
    group = largest_in_group(slot / kGroup);
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
      COOP_CHECK(chunk.cost[i] == 0);
    }
    COOP_CHECK(largest_hole_[slot] == chunk.largest_hole());
    pieces += static_cast<std::size_t>(chunk.count);
  }
  COOP_CHECK(position == total_);
  COOP_CHECK(pieces == pieces_);
  COOP_CHECK(group_hole_.size() == (directory_.size() + kGroup - 1) / kGroup);
  for (std::size_t group = 0; group < group_hole_.size(); ++group) {
    COOP_CHECK(group_hole_[group] == largest_in_group(group));
  }
}

}  // namespace coop
