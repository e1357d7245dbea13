#include "core/pool/holes_by_size.hpp"

#include "core/base/check.hpp"

namespace coop {

std::optional<Extent> HolesBySize::best_fit(Grains at_least) const {
  const auto found = holes_.lower_bound({at_least, 0});
  if (found == holes_.end()) return std::nullopt;
  const auto [size, begin] = *found;
  return Extent{begin, begin + size};
}

void HolesBySize::expect_block() {
  const std::size_t nodes = holes_.size() + spare_.size() + 1;
  if (spare_.capacity() < nodes) spare_.reserve(nodes * 2);
  std::set<Key> fresh{{0, 0}};
  spare_.push_back(fresh.extract(fresh.begin()));
}

void HolesBySize::note_taken(Extent hole, Extent block) noexcept {
  remove(hole);
  if (hole.begin < block.begin) add({hole.begin, block.begin});
  if (block.end < hole.end) add({block.end, hole.end});
}

void HolesBySize::note_slid(const AddressOrder::Joined& joined) noexcept {
  if (joined.left) remove(*joined.left);
  if (joined.right) remove(*joined.right);
  add(joined.hole);
}

void HolesBySize::note_released(const AddressOrder::Joined& joined) noexcept {
  note_slid(joined);
  spare_.pop_back();
}

void HolesBySize::add(Extent hole) noexcept {
  auto node = std::move(spare_.back());
  spare_.pop_back();
  node.value() = {hole.size(), hole.begin};
  holes_.insert(std::move(node));
}

void HolesBySize::remove(Extent hole) noexcept {
  const auto found = holes_.find({hole.size(), hole.begin});
  COOP_CHECK(found != holes_.end());
  spare_.push_back(holes_.extract(found));
}

}  // namespace coop
