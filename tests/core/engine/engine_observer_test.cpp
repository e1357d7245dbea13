// What the observer is told is enough to draw the pool.
#include <map>

#include <gtest/gtest.h>

#include "support/draw_program.hpp"
#include "support/program_run.hpp"
#include "support/written_program.hpp"

namespace coop {
namespace {

using testing::Case;

// Draws along, and complains where the drawing makes no sense.
class Drawing final : public EngineObserver {
 public:
  void on_event(const EngineEvent& event) noexcept override {
    ++counts[event.kind];
    EXPECT_GE(event.now, now_) << "time goes on";
    now_ = event.now;
    switch (event.kind) {
      case EngineEvent::Kind::kAllocated:
        draw(event.offset, event.bytes);
        break;
      case EngineEvent::Kind::kFreed:
        wipe(event.offset, event.bytes);
        break;
      case EngineEvent::Kind::kMoved:
        wipe(event.from, event.bytes);
        draw(event.offset, event.bytes);
        break;
      case EngineEvent::Kind::kPlaced:
      case EngineEvent::Kind::kEvicted:
      case EngineEvent::Kind::kCut:
      case EngineEvent::Kind::kCopiedAside:
        EXPECT_EQ(blocks_.at(event.offset), event.bytes);
        break;
      default:
        break;
    }
  }

  std::map<EngineEvent::Kind, int> counts;
  [[nodiscard]] std::size_t block_count() const { return blocks_.size(); }
  [[nodiscard]] const std::map<Bytes, Bytes>& blocks() const { return blocks_; }

 private:
  void draw(Bytes offset, Bytes bytes) {
    const auto after = blocks_.lower_bound(offset);
    EXPECT_TRUE(after == blocks_.end() || offset + bytes <= after->first);
    if (after != blocks_.begin()) {
      const auto before = std::prev(after);
      EXPECT_LE(before->first + before->second, offset);
    }
    blocks_[offset] = bytes;
  }
  void wipe(Bytes offset, Bytes bytes) {
    const auto block = blocks_.find(offset);
    ASSERT_TRUE(block != blocks_.end() && block->second == bytes);
    blocks_.erase(block);
  }

  std::map<Bytes, Bytes> blocks_;
  double now_ = 0;
};

TEST(EngineObserver, IsToldEnoughToDrawThePool) {
  std::map<EngineEvent::Kind, int> counts;
  const auto policies = known_policies();
  testing::for_each_case(testing::scaled(400), [&](Case& one) {
    Drawing drawing;
    testing::RunOptions options;
    options.pool_bytes = to_bytes(one.random.between(30, 110));
    options.policy = policies[one.seed % policies.size()].name.data();
    options.is_stressed = one.random.chance(0.15);
    options.engine.observer = &drawing;
    testing::Coverage coverage;
    testing::FaultPlan no_faults;
    testing::ProgramRun(options, coverage, no_faults)
        .run(draw_program(one.random, {.events = one.random.between(20, 120)}));
    EXPECT_EQ(drawing.block_count(), 0U);
    for (const auto& [kind, count] : drawing.counts) counts[kind] += count;
  });
  if (testing::wanted_seed() || kFullChecks) return;
  EXPECT_EQ(counts.size(), 10U) << "some kind of event never happened";
}

std::map<Bytes, Bytes> blocks_of(const Engine& engine) {
  std::map<Bytes, Bytes> all;
  for (const auto& [block, info] : engine.blocks()) {
    EXPECT_TRUE(engine.has_block(block));
    all[info.offset] = info.bytes;
  }
  return all;
}

TEST(EngineObserver, OneThatWatchesIsToldAsWell) {
  testing::Program program(6);
  Engine& engine = program.engine();
  Drawing observer;
  Drawing watcher;
  engine.observe(&observer, nullptr);
  engine.watch(&watcher);
  const auto source = program.source(1);
  for (std::uint64_t salt = 2; salt < 12; ++salt) {
    program.make(salt, {source});
    EXPECT_EQ(watcher.blocks(), blocks_of(engine));
  }
  EXPECT_GT(watcher.counts[EngineEvent::Kind::kEvicted], 0);
  EXPECT_EQ(watcher.counts, observer.counts);
  engine.observe(nullptr, nullptr);
  program.make(12, {source});
  EXPECT_EQ(watcher.blocks(), blocks_of(engine)) << "it goes on alone";
  engine.watch(nullptr);
  const auto before = watcher.counts;
  program.make(13, {source});
  EXPECT_EQ(watcher.counts, before);
}

}  // namespace
}  // namespace coop
