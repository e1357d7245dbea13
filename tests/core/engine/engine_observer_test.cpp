// What the observer is told is enough to draw the pool.
#include <map>

#include <gtest/gtest.h>

#include "support/draw_program.hpp"
#include "support/program_run.hpp"

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

}  // namespace
}  // namespace coop
