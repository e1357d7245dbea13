#include "core/lineage/evicted_regions.hpp"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::Case;

double cost_around(EvictedRegions& regions, const std::vector<RegionNodeId>& members) {
  EvictedRegions::Sum sum(regions);
  for (const RegionNodeId member : members) sum.add(member);
  return sum.cost();
}

TEST(EvictedRegions, ARegionCostsWhatItsMembersCost) {
  EvictedRegions regions;
  const RegionNodeId a = regions.add(1);
  const RegionNodeId b = regions.add(10);
  const RegionNodeId c = regions.add(100);
  regions.join(a, b);
  EXPECT_EQ(cost_around(regions, {a}), 11);
  EXPECT_EQ(cost_around(regions, {a, b}), 11) << "one region counts once";
  EXPECT_EQ(cost_around(regions, {a, c}), 111);
}

TEST(EvictedRegions, WhoeverLeavesTakesItsCostAlongAndTheOthersStayTogether) {
  EvictedRegions regions;
  const RegionNodeId a = regions.add(1);
  const RegionNodeId b = regions.add(10);
  const RegionNodeId c = regions.add(100);
  regions.join(a, b);
  regions.join(b, c);
  regions.leave(b, 10);
  EXPECT_EQ(cost_around(regions, {a}), 101);
  regions.leave(a, 1);
  regions.leave(c, 100);
  EXPECT_EQ(regions.node_count(), 0U);
}

TEST(EvictedRegions, NobodyIsAMemberOfNothing) {
  EvictedRegions regions;
  regions.join({}, regions.add(1));
  regions.leave({}, 1);
  EXPECT_EQ(cost_around(regions, {{}}), 0);
}

// Against sets that are written down, which is slow and plain.
TEST(EvictedRegions, AgreeWithSetsWrittenDown) {
  testing::for_each_case(testing::scaled(300), [](Case& one) {
    struct Member {
      RegionNodeId node;
      double cost = 0;
      int region = 0;
    };
    EvictedRegions regions;
    std::vector<Member> members;
    int next_region = 0;
    for (int i = 0; i < 300; ++i) {
      const double lot = one.random.unit();
      if (members.size() < 2 || lot < 0.4) {
        const double cost = one.random.between(1, 1000);
        members.push_back({regions.add(cost), cost, next_region++});
      } else if (lot < 0.7) {
        const Member& a = members[one.random.below(members.size())];
        const Member& b = members[one.random.below(members.size())];
        regions.join(a.node, b.node);
        const int from = b.region;
        const int to = a.region;
        for (Member& member : members) {
          if (member.region == from) member.region = to;
        }
      } else {
        const std::size_t gone = one.random.below(members.size());
        regions.leave(members[gone].node, members[gone].cost);
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(gone));
      }
      std::map<int, double> costs;
      for (const Member& member : members) costs[member.region] += member.cost;
      for (const Member& member : members) {
        ASSERT_EQ(cost_around(regions, {member.node}), costs[member.region]);
      }
      ASSERT_LE(regions.node_count(), 2 * members.size() + 64);
    }
    for (const Member& member : members) regions.leave(member.node, member.cost);
    ASSERT_EQ(regions.node_count(), 0U) << "nodes leak";
  });
}

TEST(EvictedRegions, MembersThatComeAndGoLeaveNothingBehind) {
  EvictedRegions regions;
  const RegionNodeId stays = regions.add(1);
  RegionNodeId before = stays;
  for (int i = 0; i < 100'000; ++i) {
    const RegionNodeId next = regions.add(1);
    regions.join(before, next);
    if (before != stays) regions.leave(before, 1);
    before = next;
    ASSERT_LE(regions.node_count(), 64U);
  }
}

}  // namespace
}  // namespace coop
