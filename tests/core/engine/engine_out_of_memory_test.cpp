// What an out-of-memory error says, and that it is true.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "support/hash_world.hpp"

namespace coop {
namespace {

using testing::HashWorld;

class Scene {
 public:
  explicit Scene(Grains grains, const char* policy = "coop", bool ignores_addresses = false)
      : policy_(make_policy(policy)),
        pool_({.bytes = to_bytes(grains),
               .fit = policy_->traits().fit,
               .small_limit = 0,
               .ignores_addresses = ignores_addresses},
              backing_),
        world_(to_bytes(4096)),
        engine(pool_, *policy_, world_) {
    world_.set_engine(engine, pool_);
  }

  StorageId source(Grains grains) {
    const BlockId block = engine.allocate(to_bytes(grains));
    world_.write(block, 1);
    return engine.add_source(world_.new_storage(), to_bytes(grains), block);
  }
  StorageId make(Grains grains, StorageId from, double cost = 10) {
    RunningCall call = engine.begin_call({&from, 1}, {});
    const NewOutput output{.block = engine.allocate(to_bytes(grains), cost),
                           .storage = world_.new_storage(),
                           .bytes = to_bytes(grains)};
    world_.write(output.block, 2);
    const Token token = world_.remember({.salt = 1, .makes = {to_bytes(grains)}, .cost = cost});
    return engine
        .end_call(call,
                  {.token = token, .cost = cost, .is_replayable = true, .outputs = {&output, 1}})
        .front();
  }
  MemoryReport report_of(Grains request) {
    try {
      engine.free(engine.allocate(to_bytes(request)));
    } catch (const OutOfMemory& error) {
      text = error.what();
      return error.report();
    }
    ADD_FAILURE() << "it fits";
    return {};
  }

 private:
  FakeBacking backing_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  HashWorld world_;

 public:
  Engine engine;
  std::string text;
};

TEST(EngineOutOfMemory, SaysWhoHasWhat) {
  Scene scene(100);
  const StorageId batch = scene.source(10);
  const StorageId parameter = scene.source(20);
  scene.make(15, batch);
  scene.make(5, batch);
  scene.engine.release(batch);  // only there for what is made from it
  const StorageId seen = scene.source(7);
  scene.engine.export_storage(seen);
  RunningCall call = scene.engine.begin_call({&parameter, 1}, {});
  const BlockId workspace = scene.engine.allocate(to_bytes(3));

  const MemoryReport report = scene.report_of(90);
  EXPECT_EQ(report.requested, to_bytes(90));
  EXPECT_EQ(report.held_as(Holder::kInput).bytes, to_bytes(20));
  EXPECT_EQ(report.held_as(Holder::kBeingMade).bytes, to_bytes(3));
  EXPECT_EQ(report.held_as(Holder::kLineage).bytes, to_bytes(10));
  EXPECT_EQ(report.held_as(Holder::kExported).bytes, to_bytes(7));
  EXPECT_EQ(report.held_as(Holder::kSource).bytes, 0U);
  EXPECT_EQ(report.lasting, to_bytes(20 + 7)) << "the parameter, and what is seen from outside";
  Bytes all = report.free;
  for (const Holding& held : report.held) all += held.bytes;
  EXPECT_EQ(all, report.pool);
  EXPECT_EQ(report.largest.front().bytes, to_bytes(20));
  EXPECT_NE(scene.text.find("kept only to recompute others"), std::string::npos) << scene.text;

  scene.engine.free(workspace);
  scene.engine.abort_call(call);
  scene.engine.validate();
}

TEST(EngineOutOfMemory, TheSmallestBudgetThatItNamesIsEnoughAndNoGrainLessIs) {
  for (const bool ignores_addresses : {false, true}) {
    const char* const policy = ignores_addresses ? "dtr" : "coop";
    const auto fill = [](Scene& scene) {
      const StorageId batch = scene.source(10);
      scene.make(15, batch);
      scene.make(5, batch);
    };
    Scene scene(40, policy, ignores_addresses);
    fill(scene);
    const auto enough = static_cast<Grains>(scene.report_of(35).smallest_budget / kGrainBytes);
    EXPECT_EQ(enough, 45) << "what cannot be recomputed, and the request";
    Scene larger(enough, policy, ignores_addresses);
    fill(larger);
    larger.engine.free(larger.engine.allocate(to_bytes(35)));
    Scene smaller(enough - 1, policy, ignores_addresses);
    fill(smaller);
    EXPECT_THROW(smaller.engine.allocate(to_bytes(35)), OutOfMemory);
  }
}

TEST(EngineOutOfMemory, OfMoreThanAPoolCanBeNoSmallerBudgetIsSaidToBeEnough) {
  Scene scene(40);
  scene.source(10);
  for (const Bytes request : {kMaxPoolBytes, 4 * kMaxPoolBytes, Bytes{1} << 61U}) {
    try {
      scene.engine.allocate(request);
      FAIL();
    } catch (const OutOfMemory& error) {
      EXPECT_GE(error.report().smallest_budget, request + to_bytes(10));
      const std::string text = error.what();
      EXPECT_NE(text.find("No pool can be large enough"), std::string::npos) << text;
      EXPECT_EQ(text.find("It would be served"), std::string::npos) << text;
    }
  }
}

TEST(EngineOutOfMemory, WhatAnOperatorReadsIsMovedAsideForIt) {
  Scene scene(40);
  const StorageId first = scene.source(2);
  scene.make(16, first);
  const StorageId read = scene.make(4, first);
  scene.make(16, first);
  RunningCall call = scene.engine.begin_call({&read, 1}, {});
  // It lies between the others, and stays there while the operator runs.
  EXPECT_THROW(scene.engine.allocate(to_bytes(30)), OutOfMemory);
  scene.engine.make_room(call, to_bytes(30));
  scene.engine.free(scene.engine.allocate(to_bytes(30)));
  EXPECT_TRUE(scene.engine.is_resident(read));
  EXPECT_THROW(scene.engine.make_room(call, to_bytes(35)), OutOfMemory);
  EXPECT_TRUE(scene.engine.is_resident(read));
  scene.engine.abort_call(call);
  scene.engine.validate();
  scene.engine.evict_all();
  EXPECT_FALSE(scene.engine.is_resident(read)) << "it is as evictable as it was";

  const Write write{.storage = read};
  call = scene.engine.begin_call({}, {&write, 1});
  EXPECT_THROW(scene.engine.make_room(call, to_bytes(1)), InvalidArgument);
  scene.engine.abort_call(call);
  scene.engine.validate();
}

// As for a fused Adam, which reads parameters, gradients and states all at once.
TEST(EngineOutOfMemory, WhatIsThereOfManyInputsIsMovedTogetherForTheRest) {
  Scene scene(100);
  std::vector<StorageId> all{scene.source(4)};
  const StorageId evicted = scene.make(18, all.front());
  scene.engine.evict_all();
  ASSERT_FALSE(scene.engine.is_resident(evicted));
  std::vector<StorageId> in_between;
  for (int i = 0; i < 12; ++i) {
    all.push_back(scene.source(4));
    in_between.push_back(scene.source(4));
  }
  for (const StorageId id : in_between) scene.engine.release(id);
  all.push_back(evicted);
  RunningCall call = scene.engine.begin_call(all, {});
  EXPECT_TRUE(scene.engine.is_resident(evicted));
  scene.engine.abort_call(call);
  scene.engine.evict_all();
  EXPECT_FALSE(scene.engine.is_resident(evicted)) << "nothing is pinned any more";
  scene.engine.validate();
}

// The gradient of a last layer whose weights are the first one's too: it is made from logits, and read when the gradients
// and the states of all others are there.
TEST(EngineOutOfMemory, WhatCouldNotComeBackWhenItIsTightestGoesLast) {
  Scene scene(48);
  const StorageId input = scene.source(10);
  const StorageId states = scene.source(8);
  scene.engine.release(scene.make(10, input));  // 30 beside what stays, at the end of a call
  scene.engine.release(states);

  const StorageId dearer = scene.make(4, input, 30);
  const StorageId logits = scene.make(30, input);
  const StorageId gradient = scene.make(4, logits);
  scene.engine.release(logits);
  RunningCall reader = scene.engine.begin_call({&dearer, 1}, {});
  scene.engine.abort_call(reader);
  scene.engine.free(scene.engine.allocate(to_bytes(34)));
  EXPECT_TRUE(scene.engine.is_resident(gradient));
  EXPECT_FALSE(scene.engine.is_resident(dearer));
  scene.engine.free(scene.engine.allocate(to_bytes(38)));
  EXPECT_FALSE(scene.engine.is_resident(gradient)) << "where nothing else helps, it goes";
}

TEST(EngineOutOfMemory, WhatIsOnlyThereForLineageGoesFirst) {
  Scene scene(40);
  const StorageId batch = scene.source(20);
  const StorageId loss = scene.make(1, batch);
  scene.make(1, loss);
  scene.engine.release(batch);
  // 18 are free. The batch is kept for a loss that is far smaller.
  scene.engine.free(scene.engine.allocate(to_bytes(35)));
  EXPECT_EQ(scene.engine.stats().held_by_lineage, 0U);
  scene.engine.validate();
}

TEST(EngineOutOfMemory, APolicyOfNeighboursNeedsAddresses) {
  EXPECT_THROW(Scene(40, "coop", true), InvalidArgument);
}

}  // namespace
}  // namespace coop
