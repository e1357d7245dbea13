#include "core/engine/evicting_pool.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "support/layout.hpp"
#include "support/random_cases.hpp"
#include "support/recording_owner.hpp"

namespace coop {
namespace {

using testing::evictable;
using testing::hole;
using testing::Layout;
using testing::movable;
using testing::PieceSpec;
using testing::pinned;
using testing::RecordingOwner;
using testing::request;
using testing::stays;
using testing::stopped_clock;

TEST(EvictingPool, EvictsNothingWhileSomethingIsFree) {
  Layout layout({evictable(4, 1), hole(4), evictable(4, 1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(4));
  EXPECT_TRUE(owner.evictions.empty());
  EXPECT_EQ(evicting.stats().allocations, 1U);
  EXPECT_EQ(evicting.stats().searches, 0U);
}

TEST(EvictingPool, EvictsAWindowAndUsesItAtOnce) {
  Layout layout({evictable(4, 9), evictable(2, 1), hole(1), evictable(2, 1), evictable(4, 9)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  const BlockId block = evicting.allocate(request(5));
  EXPECT_EQ(layout.pool().info(block).offset, to_bytes(4));
  EXPECT_EQ(owner.evictions, (std::vector{layout.block(1), layout.block(3)}));
  EXPECT_EQ(evicting.stats().searches, 1U);
  EXPECT_EQ(evicting.stats().evicted_bytes, to_bytes(4));
  EXPECT_EQ(evicting.stats().evicted_cost, 2);
  EXPECT_EQ(evicting.stats().fragmentation(), 0);
}

TEST(EvictingPool, FragmentationIsWhatIsFreeOnceTheRequestIsServed) {
  Layout layout({hole(2), pinned(1), evictable(6, 1), pinned(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  evicting.allocate(request(5));
  EXPECT_DOUBLE_EQ(evicting.stats().fragmentation(), 3.0 / 10.0);
}

TEST(EvictingPool, RequestsThatFailDoNotCountAsFragmentation) {
  Layout layout({hole(2), pinned(1), evictable(6, 1), pinned(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(evicting.allocate(request(7)), OutOfMemory);
  evicting.allocate(request(5));
  EXPECT_EQ(evicting.stats().searches, 4U);
  EXPECT_EQ(evicting.stats().served, 1U);
  EXPECT_DOUBLE_EQ(evicting.stats().fragmentation(), 3.0 / 10.0);
}

TEST(EvictingPool, SearchTimeIsWhatTheClockSays) {
  static std::uint64_t ticks = 0;
  const WallClock ticking = [] { return ticks += 10; };
  Layout layout({evictable(2, 1), evictable(2, 1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, ticking);
  evicting.allocate(request(4));
  EXPECT_EQ(evicting.stats().search_ns, 20U) << "choosing victims, then a place";
  EXPECT_EQ(evicting.stats().making_room_ns, 50U) << "and all that lies between";
}

// What lives long is put where such blocks belong, even if a window elsewhere is cheaper today.
TEST(EvictingPool, MakesRoomForLongLivedBlocksAtTheLeft) {
  for (const auto& [name, expected] :
       {std::pair("coop", Grains{0}), std::pair("coop-paper", Grains{160})}) {
    const auto policy = make_policy(name);
    RecordingOwner owner;
    FakeBacking backing;
    Pool pool({.bytes = to_bytes(256), .fit = policy->traits().fit, .small_limit = 0}, backing);
    std::vector<BlockId> blocks;
    for (int i = 0; i < 64; ++i)
      blocks.push_back(*pool.allocate(to_bytes(4), Placement::kExpensive));
    for (const BlockId block : blocks) {
      pool.set_evictable(block, pool.info(block).offset == to_bytes(160) ? 1 : 50, 0);
    }
    EvictingPool evicting(pool, *policy, owner, stopped_clock);
    const BlockId weights = evicting.allocate({to_bytes(4), Placement::kLongLived, 1e6});
    EXPECT_EQ(pool.info(weights).offset, to_bytes(expected)) << name;
  }
}

TEST(EvictingPool, BadRequestsChangeNothing) {
  Layout layout({evictable(4, 1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate({0, Placement::kCheap, 0}), InvalidArgument);
  EXPECT_THROW(evicting.allocate({1, Placement::kCheap, std::nan("")}), InvalidArgument);
  EXPECT_THROW(evicting.allocate(request(5)), OutOfMemory) << "larger than the pool";
  EXPECT_TRUE(owner.evictions.empty());
  EXPECT_EQ(evicting.stats().allocations, 0U);
}

TEST(EvictingPool, OutOfMemorySaysWhereTheBytesAre) {
  Layout layout({pinned(3), evictable(4, 1), hole(1), stays(2), movable(5), hole(1)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  try {
    evicting.allocate(request(7));
    FAIL();
  } catch (const OutOfMemory& error) {
    const MemoryReport& report = error.report();
    EXPECT_EQ(report.requested, to_bytes(7));
    EXPECT_EQ(report.pool, to_bytes(16));
    EXPECT_EQ(report.free, to_bytes(2));
    EXPECT_EQ(report.held_as(Holder::kInput).bytes, to_bytes(3));
    EXPECT_EQ(report.held_as(Holder::kEvictable).bytes, to_bytes(4));
    EXPECT_EQ(report.held_as(Holder::kSource).bytes, to_bytes(5));
    EXPECT_EQ(report.held_as(Holder::kExported).bytes, to_bytes(2));
    EXPECT_EQ(report.largest_room, to_bytes(5));
    EXPECT_EQ(report.smallest_budget, to_bytes(16 + 7 - 1)) << "one grain is free at the end";
    ASSERT_EQ(report.largest.size(), 3U);
    EXPECT_EQ(report.largest[0].bytes, to_bytes(5));
    EXPECT_NE(std::string(error.what()).find("2.5 KiB"), std::string::npos) << error.what();
  }
  // Nothing was evicted in vain, and the program goes on.
  EXPECT_TRUE(owner.evictions.empty());
  EXPECT_TRUE(layout.pool().contains(evicting.allocate(request(5))));
}

TEST(EvictingPool, MovesBlocksAsideWhereNoWindowExists) {
  // Two movable blocks cut the pool in three; no window of 6 exists, but 8 grains can be made free.
  Layout layout({evictable(3, 1), movable(1), hole(2), movable(2), evictable(3, 1)});
  for (const char* name : {"coop", "dtr"}) {
    const auto policy = make_policy(name);
    RecordingOwner owner;
    Layout fresh({evictable(3, 1), movable(1), hole(2), movable(2), evictable(3, 1)});
    EvictingPool evicting(fresh.pool(), *policy, owner, stopped_clock);
    const BlockId block = evicting.allocate(request(8));
    EXPECT_EQ(fresh.pool().info(block).offset, to_bytes(3)) << name;
    EXPECT_EQ(fresh.pool().info(fresh.block(1)).offset, 0U);
    EXPECT_EQ(fresh.pool().info(fresh.block(3)).offset, to_bytes(1));
    ASSERT_EQ(owner.moves.size(), 2U);
    EXPECT_EQ(owner.moves[0].from, to_bytes(3));
    EXPECT_EQ(owner.moves[0].to, 0U);
    EXPECT_EQ(evicting.stats().moves, 2U);
    EXPECT_EQ(evicting.stats().moved_bytes, to_bytes(3));
    fresh.pool().validate();
  }
}

// It is kept for the next small request. All that could be evicted was no use on either side of it.
TEST(EvictingPool, AnEmptySlabIsInNobodysWay) {
  constexpr Bytes kMiB = Bytes{1} << 20U;
  FakeBacking backing;
  Pool pool({.bytes = 64 * kMiB}, backing);
  const auto left = pool.allocate(31 * kMiB, Placement::kLongLived);
  const auto small = pool.allocate(1024, Placement::kExpensive);
  const auto right = pool.allocate(pool.largest_hole_bytes(), Placement::kLongLived);
  ASSERT_TRUE(left && small && right);
  pool.set_evictable(*left, 1, 0);
  pool.set_evictable(*right, 1, 0);
  ASSERT_TRUE(pool.free(*small));
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(pool, *policy, owner, stopped_clock);
  EXPECT_NO_THROW(evicting.allocate({40 * kMiB, Placement::kExpensive, 1e6}));
  pool.validate();
}

TEST(EvictingPool, DoesNotMoveBlocksOverWhatStays) {
  Layout layout({hole(3), movable(1), hole(2), stays(1), movable(1), hole(3)});
  const auto policy = make_policy("coop");
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate(request(7)), OutOfMemory);
  EXPECT_TRUE(owner.moves.empty());
  evicting.allocate(request(5));
  ASSERT_EQ(owner.moves.size(), 1U);
}

// Sliding, and with real memory: what is moved keeps its contents, even where old and new place
// overlap.
TEST(EvictingPool, WhatIsMovedKeepsItsContents) {
  testing::for_each_case(testing::scaled(300), [](testing::Case& one) {
    HostBacking backing;
    Pool pool({.bytes = to_bytes(60), .small_limit = 0}, backing);
    const auto policy = make_policy(one.random.chance(0.5) ? "coop" : "dte");
    std::map<std::uint32_t, unsigned char> contents;

    class Copier final : public BlockOwner {
     public:
      Copier(Pool& pool, std::map<std::uint32_t, unsigned char>& contents)
          : pool_(pool), contents_(contents) {}
      void evict(BlockId id) override { contents_.erase(id.index()); }
      void relocate(BlockId id, Bytes from, Bytes to, Bytes bytes) override {
        std::byte* const base = pool_.address(id) - from;
        std::memmove(base + to, base + from, bytes);
      }

     private:
      Pool& pool_;
      std::map<std::uint32_t, unsigned char>& contents_;
    } owner(pool, contents);
    EvictingPool evicting(pool, *policy, owner, stopped_clock);

    std::vector<BlockId> kept;
    for (int i = 0; i < 120; ++i) {
      const Grains size = one.random.between(1, 12);
      try {
        const auto placement = static_cast<Placement>(one.random.below(3));
        const BlockId block = evicting.allocate({to_bytes(size), placement, 10.0 * i});
        const auto fill = static_cast<unsigned char>(one.random.next());
        std::memset(pool.address(block), fill, pool.info(block).bytes);
        contents[block.index()] = fill;
        if (one.random.chance(0.3)) {
          pool.set_tenure(block, Tenure::kMovable);
          kept.push_back(block);
        } else {
          pool.set_evictable(block, 1 + one.random.unit(), 10.0 * i);
        }
      } catch (const OutOfMemory&) {
        ASSERT_FALSE(kept.empty());
      }
      if (kept.size() > 6) {
        const std::size_t victim = one.random.below(kept.size());
        contents.erase(kept[victim].index());
        ASSERT_TRUE(pool.free(kept[victim]));
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(victim));
      }
      for (const BlockId block : kept) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(pool.address(block));
        const auto expected = contents.at(block.index());
        ASSERT_TRUE(std::all_of(bytes, bytes + pool.info(block).bytes,
                                [&](unsigned char b) { return b == expected; }));
      }
    }
  });
}

// --- the loop ends, whatever the policy and the owner do ---

class StubbornPolicy final : public Policy {
 public:
  enum class Habit { kChoosesNothing, kChoosesOneAtATime, kChoosesPinned };
  StubbornPolicy(Habit habit, BlockId pinned)
      : Policy({.name = "stubborn", .summary = "for tests"}), habit_(habit), pinned_(pinned) {}
  void choose_victims(const Pool& pool, const Request& /*request*/,
                      std::vector<BlockId>& victims) override {
    ++asked;
    ASSERT_LT(asked, 100) << "the loop does not end";
    if (habit_ == Habit::kChoosesNothing) return;
    if (habit_ == Habit::kChoosesPinned) {
      victims.push_back(pinned_);
      return;
    }
    for (const Chunk* chunk : pool.order().chunks()) {
      for (const int slot : SlotsOf(chunk->evictable())) {
        victims.push_back(pool.id_of(chunk->block_at(slot)));
        return;
      }
    }
  }
  int asked = 0;

 private:
  Habit habit_;
  BlockId pinned_;
};

TEST(EvictingPoolEnds, WhenThePolicyChoosesNothing) {
  Layout layout({evictable(4, 1), evictable(4, 1)});
  StubbornPolicy policy(StubbornPolicy::Habit::kChoosesNothing, {});
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), policy, owner, stopped_clock);
  // The last resort finds what the policy did not.
  EXPECT_NO_THROW(evicting.allocate(request(4)));
  Layout full({pinned(4), pinned(4)});
  EvictingPool hopeless(full.pool(), policy, owner, stopped_clock);
  EXPECT_THROW(hopeless.allocate(request(4)), OutOfMemory);
  EXPECT_LE(policy.asked, 2);
}

TEST(EvictingPoolEnds, WhenEveryVictimIsInVain) {
  // Ten evictable blocks between pinned ones: all go, one by one, and still nothing fits.
  std::vector<PieceSpec> pieces;
  for (int i = 0; i < 10; ++i) {
    pieces.push_back(evictable(1, 1));
    pieces.push_back(pinned(1));
  }
  Layout layout(pieces);
  StubbornPolicy policy(StubbornPolicy::Habit::kChoosesOneAtATime, {});
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate(request(2)), OutOfMemory);
  EXPECT_EQ(policy.asked, 11);
  EXPECT_EQ(owner.evictions.size(), 10U);
  layout.pool().validate();
}

TEST(EvictingPoolEnds, WhenThePolicyChoosesWhatMayNotGo) {
  Layout layout({pinned(4), evictable(2, 1)});
  StubbornPolicy policy(StubbornPolicy::Habit::kChoosesPinned, layout.block(0));
  RecordingOwner owner;
  EvictingPool evicting(layout.pool(), policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate(request(2)), InternalError);
  EXPECT_TRUE(layout.pool().contains(layout.block(0)));
  EXPECT_TRUE(owner.evictions.empty());
}

TEST(EvictingPoolEnds, WhenTheOwnerAllocates) {
  // Against the rules, and told so: through the evicting pool at once, through the pool itself when
  // there have been more evictions than blocks.
  class Greedy final : public BlockOwner {
   public:
    void evict(BlockId /*id*/) override {
      ASSERT_LT(++calls, 1000) << "the loop does not end";
      if (evicting != nullptr) evicting->allocate(request(1));
      if (const auto block = pool->allocate(to_bytes(1), Placement::kCheap)) {
        pool->set_evictable(*block, 1, 0);
      }
    }
    void relocate(BlockId /*id*/, Bytes /*from*/, Bytes /*to*/, Bytes /*bytes*/) override {}
    EvictingPool* evicting = nullptr;
    Pool* pool = nullptr;
    int calls = 0;
  };
  for (const bool through_evicting : {true, false}) {
    Layout layout(std::vector<PieceSpec>(64, evictable(1, 1)));
    const auto policy = make_policy("lru");
    Greedy owner;
    EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
    owner.pool = &layout.pool();
    if (through_evicting) {
      owner.evicting = &evicting;
      EXPECT_THROW(evicting.allocate(request(2)), InvalidArgument);
    } else {
      EXPECT_THROW(evicting.allocate(request(2)), InternalError);
    }
    layout.pool().validate();
  }
}

TEST(EvictingPoolEnds, WhenTheOwnerThrows) {
  class Refusing final : public BlockOwner {
   public:
    void evict(BlockId /*id*/) override {
      if (calls++ == 1) throw std::runtime_error("the second eviction fails");
    }
    void relocate(BlockId /*id*/, Bytes /*from*/, Bytes /*to*/, Bytes /*bytes*/) override {
      throw std::runtime_error("moving fails");
    }
    int calls = 0;
  };
  Layout layout({evictable(2, 1), evictable(2, 1), evictable(2, 1)});
  const auto policy = make_policy("coop");
  Refusing owner;
  EvictingPool evicting(layout.pool(), *policy, owner, stopped_clock);
  EXPECT_THROW(evicting.allocate(request(6)), std::runtime_error);
  // The first is gone, the other two are as they were, and the next try succeeds.
  EXPECT_FALSE(layout.pool().contains(layout.block(0)));
  EXPECT_TRUE(layout.pool().contains(layout.block(1)));
  EXPECT_TRUE(layout.pool().contains(layout.block(2)));
  layout.pool().validate();
  EXPECT_NO_THROW(evicting.allocate(request(6)));

  Layout scattered({hole(2), movable(1), hole(2)});
  EvictingPool sliding(scattered.pool(), *policy, owner, stopped_clock);
  EXPECT_THROW(sliding.allocate(request(4)), std::runtime_error);
  EXPECT_EQ(scattered.pool().info(scattered.block(1)).offset, to_bytes(2));
  scattered.pool().validate();
}

}  // namespace
}  // namespace coop
