// What the pool knows of a block: what it costs, when it was used, whether it may go or move.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/pool/pool.hpp"

namespace coop {
namespace {

// Costs the search may divide and add up without ever meeting zero, infinity or NaN.
constexpr double kLeastCost = 1.0;
constexpr double kMostCost = 1e15;

}  // namespace

// Of a block that was fixed and still is, the search reads nothing else.
void Pool::note_change(BlockIndex index, bool was_fixed) noexcept {
  Record& record = records_[index];
  if (record.is_unpublished || (was_fixed && is_fixed(record))) return;
  record.is_unpublished = true;
  unpublished_.push_back(index);  // reserve_record has made room
}

// Brings the columns that the search reads in line with the records.
void Pool::publish_all() const noexcept {
  for (const BlockIndex index : unpublished_) {
    Record& record = records_[index];
    record.is_unpublished = false;
    if (record.kind != Kind::kBlock) continue;
    order_.set_facts(index, {record.cost, record.last_use, is_fixed(record)});
  }
  unpublished_.clear();
}

void Pool::change_tenure(Record& record, Tenure tenure) noexcept {
  const Bytes bytes = to_bytes(record.extent.size());
  if (record.tenure == Tenure::kEvictable) evictable_bytes_ -= bytes;
  if (tenure == Tenure::kEvictable) evictable_bytes_ += bytes;
  record.tenure = tenure;
}

void Pool::set_tenure(BlockId id, Tenure tenure) {
  Record& known = record(id);
  if (known.kind == Kind::kSmall) return;  // small blocks stay where they are
  if (tenure == Tenure::kEvictable && known.cost <= 0) {
    throw InvalidArgument("a block becomes evictable with set_evictable, which knows its cost");
  }
  const bool was_fixed = is_fixed(known);
  change_tenure(known, tenure);
  note_change(id.index(), was_fixed);
}

void Pool::set_evictable(BlockId id, double cost, double last_use) {
  Record& known = record(id);
  if (!std::isfinite(cost) || cost < 0 || !std::isfinite(last_use)) {
    throw InvalidArgument(
        "a block's cost must be finite and not negative, its last use finite; got " +
        std::to_string(cost) + " and " + std::to_string(last_use));
  }
  // Small blocks are not worth evicting.
  if (known.kind == Kind::kSmall) return;
  const bool was_fixed = is_fixed(known);
  known.cost = static_cast<float>(std::clamp(cost, kLeastCost, kMostCost));
  known.last_use = last_use;
  change_tenure(known, Tenure::kEvictable);
  note_change(id.index(), was_fixed);
}

void Pool::touch(BlockId id, double now) {
  Record& known = record(id);
  if (!std::isfinite(now)) throw InvalidArgument("a block's last use must be a finite time");
  known.last_use = now;
  note_change(id.index(), is_fixed(known));
}

bool Pool::set_cost(BlockId id, double cost) {
  Record& known = record(id);
  if (!std::isfinite(cost) || cost < 0) {
    throw InvalidArgument("a block's cost must be finite and not negative");
  }
  if (known.tenure != Tenure::kEvictable) return false;
  const auto before =
      std::exchange(known.cost, static_cast<float>(std::clamp(cost, kLeastCost, kMostCost)));
  if (known.cost == before) return false;
  note_change(id.index(), is_fixed(known));
  return true;
}

void Pool::pin(BlockId id) {
  Record& known = record(id);
  const bool was_fixed = is_fixed(known);
  ++known.pins;
  note_change(id.index(), was_fixed);
}

void Pool::unpin(BlockId id) {
  Record& known = record(id);
  if (known.pins == 0) throw InvalidArgument("a block is unpinned that is not pinned");
  --known.pins;
  note_change(id.index(), true);
}

bool Pool::is_movable(BlockIndex index) const {
  const Record& record = records_[index];
  return record.kind == Kind::kBlock && record.pins == 0 && record.tenure != Tenure::kStays;
}

std::optional<Bytes> Pool::slide_target(BlockId id) const {
  static_cast<void>(record(id));
  if (!is_movable(id.index())) return std::nullopt;
  const AddressOrder::Place left = order_.left_neighbour(order_.place_of(id.index()));
  if (!left || !left.is_hole()) return std::nullopt;
  return to_bytes(left.extent().begin);
}

Bytes Pool::slide_left(BlockId id) {
  const auto target = slide_target(id);
  if (!target) {
    throw InvalidArgument("the block cannot slide left: it may not move, or nothing is free there");
  }
  const AddressOrder::Joined joined = order_.slide_left(id.index());
  records_[id.index()].extent = order_.place_of(id.index()).extent();
  if (holes_by_size_) holes_by_size_->note_slid(joined);
  retract_long_lived_end(joined.hole);
  if constexpr (kFullChecks) validate();
  return *target;
}

void Pool::move_to(BlockId id, BlockId place) {
  Record& moved = record(id);
  Record& other = record(place);
  if (!is_movable(id.index()) || other.kind != Kind::kBlock ||
      moved.extent.size() != other.extent.size()) {
    throw InvalidArgument(
        "a block cannot take another one's place: it may not move, or the sizes differ");
  }
  order_.trade_places(id.index(), place.index());
  std::swap(moved.extent, other.extent);
  const bool was_there = free(place);
  COOP_CHECK(was_there);
}

BlockInfo Pool::info(BlockId id) const {
  const Record& known = record(id);
  return {.offset = to_bytes(known.extent.begin),
          .bytes = to_bytes(known.extent.size()),
          .requested_bytes = known.requested,
          .placement = known.placement,
          .tenure = known.tenure,
          .pins = known.pins,
          .cost = known.cost,
          .last_use = known.last_use,
          .is_small = known.kind == Kind::kSmall};
}

std::byte* Pool::address(BlockId id) const { return base_ + info(id).offset; }

}  // namespace coop
