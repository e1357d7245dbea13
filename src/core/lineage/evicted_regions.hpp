#pragma once

// Regions of evicted Values: what has to be made again together.
//
// Evicted Values that are made from one another form a region, and the region has a cost: that of running
// all of its Calls. Evicting one more Value beside a region makes it larger and joins it with others:
// disjoint sets, as in DTR. A Value that comes back takes its cost out of its region and leaves; the
// others stay together, even where it was the only link. That makes every operation cheap, and the cost
// an estimate from above; a region whose last member leaves is gone, so the error does not pile up over
// the steps of a training run.
//
// Nodes of members that left stay only while others hang on them, and finding shortens the way to the
// root: there are never many more nodes than members.

#include <cstdint>

#include "core/base/handle.hpp"
#include "core/base/table.hpp"

namespace coop {

struct RegionNode;
using RegionNodeId = Handle<RegionNode>;

struct RegionNode {
  RegionNodeId parent;           // none: the root
  std::uint32_t references = 1;  // by the member, if it has not left, and by children
  std::uint64_t size = 1;        // of a root: how many have joined, for balance
  std::uint32_t members = 1;     // of a root
  double cost = 0;               // of a root: of all members
  std::uint64_t counted_by = 0;  // of a root: the last count that came by
};

class EvictedRegions {
 public:
  // A region of its own. None if there is no memory for it; the other functions take that as a member
  // of no region that costs nothing.
  [[nodiscard]] RegionNodeId add(double cost) noexcept;
  void join(RegionNodeId a, RegionNodeId b) noexcept;
  // `cost` as it was given to add().
  void leave(RegionNodeId member, double cost) noexcept;

  // Adds up regions, each once however many of its members are named.
  class Sum {
   public:
    explicit Sum(EvictedRegions& regions) : regions_(regions), number_(++regions.sums_begun_) {}
    void add(RegionNodeId member) noexcept;
    [[nodiscard]] double cost() const { return cost_; }

   private:
    EvictedRegions& regions_;
    std::uint64_t number_;
    double cost_ = 0;
  };

  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }

 private:
  RegionNodeId root_of(RegionNodeId id) noexcept;
  void unreference(RegionNodeId id) noexcept;

  Table<RegionNode> nodes_;
  std::uint64_t sums_begun_ = 0;
};

}  // namespace coop
