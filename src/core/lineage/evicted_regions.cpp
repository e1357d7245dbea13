#include "core/lineage/evicted_regions.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace coop {

RegionNodeId EvictedRegions::add(double cost) noexcept {
  try {
    return nodes_.add(RegionNode{.cost = cost});
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void EvictedRegions::join(RegionNodeId a, RegionNodeId b) noexcept {
  if (!a || !b) return;
  RegionNodeId large = root_of(a);
  RegionNodeId small = root_of(b);
  if (large == small) return;
  if (nodes_[large].size < nodes_[small].size) std::swap(large, small);
  RegionNode& root = nodes_[large];
  RegionNode& child = nodes_[small];
  child.parent = large;
  ++root.references;
  root.size += child.size;
  root.members += child.members;
  root.cost += child.cost;
}

void EvictedRegions::leave(RegionNodeId member, double cost) noexcept {
  if (!member) return;
  RegionNode& root = nodes_[root_of(member)];
  // Sums of differences drift: an empty region costs nothing, exactly.
  root.cost = --root.members == 0 ? 0 : std::max(0.0, root.cost - cost);
  unreference(member);
}

void EvictedRegions::Sum::add(RegionNodeId member) noexcept {
  if (!member) return;
  RegionNode& root = regions_.nodes_[regions_.root_of(member)];
  if (std::exchange(root.counted_by, number_) != number_) cost_ += root.cost;
}

// Every other node on the way is made to skip one.
RegionNodeId EvictedRegions::root_of(RegionNodeId id) noexcept {
  for (;;) {
    RegionNode& node = nodes_[id];
    if (!node.parent) return id;
    const RegionNodeId parent = node.parent;
    const RegionNodeId grandparent = nodes_[parent].parent;
    if (!grandparent) return parent;
    node.parent = grandparent;
    ++nodes_[grandparent].references;
    unreference(parent);
    id = grandparent;
  }
}

void EvictedRegions::unreference(RegionNodeId id) noexcept {
  while (id && --nodes_[id].references == 0) {
    const RegionNodeId parent = nodes_[id].parent;
    nodes_.erase(id);
    id = parent;
  }
}

}  // namespace coop
