// What every policy owes its caller, whatever it prefers.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "core/engine/evicting_pool.hpp"
#include "core/policy/policy.hpp"
#include "support/layout.hpp"
#include "support/random_cases.hpp"
#include "support/recording_owner.hpp"

namespace coop {
namespace {

using testing::Case;
using testing::evictable;
using testing::hole;
using testing::Layout;
using testing::movable;
using testing::PieceSpec;
using testing::pinned;
using testing::RecordingOwner;
using testing::stays;

class PolicyConformance : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<BlockId> choose(Pool& pool, Grains grains, double now = 1e6) {
    std::vector<BlockId> victims;
    policy_->choose_victims(pool, {to_bytes(grains), Placement::kExpensive, now}, victims);
    return victims;
  }
  std::unique_ptr<Policy> policy_ = make_policy(GetParam(), {.seed = 5});
};

TEST_P(PolicyConformance, ChoosesOnlyWhatMayGo) {
  testing::for_each_case(testing::scaled(5'000), [&](Case& one) {
    std::vector<PieceSpec> pieces;
    for (int i = one.random.between(1, 100); i > 0; --i) {
      const int kind = one.random.between(0, 9);
      const Grains size = one.random.between(1, 6);
      const double cost = 1 + 99 * one.random.unit();
      const double last_use = 1e6 * one.random.unit();
      pieces.push_back(kind == 0   ? pinned(size, cost)
                       : kind == 1 ? stays(size)
                       : kind == 2 ? movable(size)
                       : kind == 3 ? hole(size)
                                   : evictable(size, cost, last_use));
    }
    Layout layout(pieces);
    auto victims = choose(layout.pool(), one.random.between(1, 30));
    std::sort(victims.begin(), victims.end(),
              [](BlockId a, BlockId b) { return a.index() < b.index(); });
    ASSERT_EQ(std::adjacent_find(victims.begin(), victims.end()), victims.end()) << "chosen twice";
    for (const BlockId victim : victims) {
      const BlockInfo info = layout.pool().info(victim);
      ASSERT_EQ(info.tenure, Tenure::kEvictable);
      ASSERT_EQ(info.pins, 0U);
    }
  });
}

TEST_P(PolicyConformance, ChoosesNothingWhereNothingMayGo) {
  Layout layout({pinned(4), stays(4), hole(2), movable(4)});
  EXPECT_TRUE(choose(layout.pool(), 4).empty());
}

TEST_P(PolicyConformance, ChoosesInAPoolOfOneBlock) {
  Layout layout({evictable(4, 1)});
  EXPECT_EQ(choose(layout.pool(), 4), std::vector{layout.block(0)});
}

TEST_P(PolicyConformance, FreshAndFreeBlocksDoNotUpsetIt) {
  // No staleness, no cost, the largest cost: all at once, at one moment.
  Layout layout({evictable(2, 0, 1e6), evictable(2, 1e300, 1e6), evictable(2, 0, 2e6), hole(1)});
  EXPECT_FALSE(choose(layout.pool(), 2).empty());
}

TEST_P(PolicyConformance, EveryRequestIsServedOrIsOutOfMemory) {
  // A block is asked for, again and again; everything unpinned may be evicted.
  testing::for_each_case(testing::scaled(300), [&](Case& one) {
    FakeBacking backing;
    Pool pool({.bytes = to_bytes(400), .fit = policy_->traits().fit, .small_limit = 0}, backing);
    RecordingOwner owner;
    EvictingPool evicting(pool, *policy_, owner);
    std::vector<BlockId> pins;
    for (int i = 0; i < 200; ++i) {
      const double now = 1000.0 * i;
      const Grains size = one.random.between(1, 120);
      one.trace("%d: %d grains\n", i, size);
      try {
        const auto placement = static_cast<Placement>(one.random.below(3));
        const BlockId block = evicting.allocate({to_bytes(size), placement, now});
        pool.set_evictable(block, 1 + 1e4 * one.random.unit(), now);
        if (one.random.chance(0.1)) {
          pool.pin(block);
          pins.push_back(block);
        }
      } catch (const OutOfMemory& error) {
        ASSERT_LT(error.report().largest_room, to_bytes(size));
        pool.validate();
      }
      if (pins.size() > 3 || (!pins.empty() && one.random.chance(0.05))) {
        pool.unpin(pins.front());
        pins.erase(pins.begin());
      }
    }
    ASSERT_EQ(owner.evictions.size(), evicting.stats().evictions);
    pool.validate();
  });
}

TEST_P(PolicyConformance, TheSameCallsGiveTheSameChoices) {
  const auto run = [&] {
    const auto policy = make_policy(GetParam(), {.seed = 11});
    FakeBacking backing;
    Pool pool({.bytes = to_bytes(500), .fit = policy->traits().fit, .small_limit = 0}, backing);
    RecordingOwner owner;
    EvictingPool evicting(pool, *policy, owner);
    testing::Random random(23);
    for (int i = 0; i < 300; ++i) {
      const BlockId block =
          evicting.allocate({to_bytes(random.between(1, 60)), Placement::kExpensive, 100.0 * i});
      pool.set_evictable(block, 1 + random.unit(), 100.0 * i);
    }
    return owner.evictions;
  };
  const auto first = run();
  EXPECT_GT(first.size(), 100U);
  EXPECT_EQ(first, run());
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const PolicyTraits& traits : known_policies()) all.emplace_back(traits.name);
  for (const PolicyTraits& traits : known_ablations()) all.emplace_back(traits.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, PolicyConformance, ::testing::ValuesIn(names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Policies, AreChosenByName) {
  EXPECT_EQ(make_policy("coop")->traits().name, "coop");
  EXPECT_EQ(known_policies().front().name, "coop");
  for (const char* name : {"coop", "coop-paper", "dtr", "dte", "lru", "random"}) {
    EXPECT_EQ(make_policy(name)->traits().name, name);
    EXPECT_FALSE(make_policy(name)->traits().summary.empty());
  }
}

TEST(Policies, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  try {
    make_policy("fifo");
    FAIL();
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'fifo'"), std::string::npos);
    for (const std::string& name : names()) EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

TEST(Policies, AnAblationIsItsPolicyLessOnePart) {
  const PolicyTraits paper = make_policy("coop-paper")->traits();
  const auto no_window = make_policy("coop-paper-no-window");
  EXPECT_FALSE(no_window->needs_addresses());
  EXPECT_TRUE(no_window->traits().keeps_cheap_apart);
  const auto no_partition = make_policy("coop-paper-no-partition");
  EXPECT_TRUE(no_partition->needs_addresses());
  EXPECT_FALSE(no_partition->traits().keeps_cheap_apart);
  for (const PolicyTraits& ablation : {no_window->traits(), no_partition->traits()}) {
    EXPECT_EQ(ablation.fit, paper.fit);
    EXPECT_EQ(ablation.surroundings, paper.surroundings);
    EXPECT_EQ(ablation.keeps_long_lived_left, paper.keeps_long_lived_left);
  }
  EXPECT_TRUE(make_policy("coop")->traits().looks_ahead);
  EXPECT_FALSE(make_policy("coop-online")->traits().looks_ahead);
}

// What tells the policies apart: sizes, staleness, and free space beside a block.
TEST(Policies, ChooseByTheirOwnScore) {
  Layout layout({
      evictable(1, 10, 0),  // 0: stalest
      pinned(1),
      evictable(8, 40, 900'000),  // 2: cheapest per byte and staleness for its size ...
      pinned(1),
      evictable(9, 400, 800'000),  // 4: largest
      pinned(1),
      evictable(4, 24, 900'000),  // 6: ... but this one has a hole beside it
      hole(6),
  });
  const auto first_victim = [&](const char* name) {
    std::vector<BlockId> victims;
    make_policy(name)->choose_victims(layout.pool(), {to_bytes(8), Placement::kExpensive, 1e6},
                                      victims);
    return victims.at(0);
  };
  EXPECT_EQ(first_victim("lru"), layout.block(0));
  EXPECT_EQ(first_victim("largest"), layout.block(4));
  EXPECT_EQ(first_victim("dtr"), layout.block(0));
  EXPECT_EQ(first_victim("dte"), layout.block(0));
  layout.pool().pin(layout.block(0));
  EXPECT_EQ(first_victim("dtr"), layout.block(2));
  EXPECT_EQ(first_victim("dte"), layout.block(6));
  EXPECT_EQ(first_victim("coop"), layout.block(6));
  EXPECT_EQ(first_victim("coop-paper"), layout.block(6));
  EXPECT_EQ(first_victim("coop-paper-no-partition"), layout.block(6));
  EXPECT_EQ(first_victim("coop-paper-no-window"), layout.block(2)) << "as dtr";
}

}  // namespace
}  // namespace coop
