#pragma once

// What a program runs on: an engine on the hash world, and beside it what every storage would hold
// without a budget.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "support/failing_new.hpp"
#include "support/program_text.hpp"
#include "support/replay_watcher.hpp"

namespace coop::testing {

struct RunOptions {
  Bytes pool_bytes = 0;
  Bytes small_limit = 0;
  const char* policy = "coop";
  std::uint64_t seed = 0;
  EngineOptions engine;
  bool is_stressed = false;  // everything is evicted after every event
  bool is_traced = false;
  // What an operator that fails leaves where it was to write: what was there, or nothing of use.
  bool failure_restores = false;
};

struct Machine {
  Machine(const RunOptions& run_options, Coverage& counts, FaultPlan& plan)
      : options(run_options),
        coverage(counts),
        faults(plan),
        policy(make_policy(options.policy, {.seed = options.seed})),
        faulty_policy(*policy, faults),
        pool({.bytes = options.pool_bytes,
              .fit = policy->traits().fit,
              .small_limit = options.small_limit},
             backing),
        world(pool.bytes()),
        engine(pool, faulty_policy, world, options.engine),
        watcher(engine, coverage) {
    world.set_engine(engine, pool);
    world.set_observer(watcher);
    world.set_faults(faults);
  }

  RunOptions options;
  Coverage& coverage;
  FaultPlan& faults;
  FakeBacking backing;
  std::unique_ptr<Policy> policy;
  FaultyPolicy faulty_policy;
  Pool pool;
  HashWorld world;
  Engine engine;
  ReplayWatcher watcher;

  // --- what the program knows ---

  // A storage.
  struct Slot {
    StorageId storage;
    Token token = 0;
    Bytes bytes = 0;  // 0: it has no memory, and the engine does not know it
    Content expected = 0;
    int names = 0;
    std::optional<Bytes> exported_at;
    // For the records.
    bool has_lost_first_name = false;
    int version = 0;
    int overwritten_in_a_row = 0;
    struct Use {
      int version;
      std::size_t made;  // the slot of what was made from it
    };
    std::vector<Use> uses;
    [[nodiscard]] bool is_alive() const { return names > 0; }
    [[nodiscard]] bool is_held() const { return names > 0 && bytes > 0; }
  };
  struct Binding {
    std::optional<std::size_t> slot;  // none: nobody's
    int version = 0;                  // of the slot when it got this name
    bool is_first = false;
  };
  std::vector<Slot> slots;
  std::vector<Binding> names;
  Content expected_random_state = 1;
  int running = 0;  // operators
  std::uint64_t faults_swallowed = 0;

  Binding& binding(Name name) {
    if (names.size() <= static_cast<std::size_t>(name)) {
      names.resize(static_cast<std::size_t>(name) + 1);
    }
    return names[static_cast<std::size_t>(name)];
  }
  Slot* find(Name name) {
    const auto slot = binding(name).slot;
    return slot ? &slots[*slot] : nullptr;
  }
  void add(Name name, Slot slot) {
    slot.names = 1;
    slots.push_back(std::move(slot));
    binding(name) = {.slot = slots.size() - 1, .is_first = true};
  }

  [[nodiscard]] const Value& current(const Slot& slot) const {
    const Graph& graph = engine.graph();
    return graph.values()[graph.storages()[slot.storage].current];
  }
  [[nodiscard]] bool is_evicted(const Slot& slot) const {
    return slot.is_held() && !engine.is_resident(slot.storage);
  }

  // Memory for the program's own use.
  BlockId allocate(Bytes bytes, double cost) {
    faults.pass(FaultPlace::kOperatorAllocates, pool);
    const Exposed engines;
    return engine.allocate(bytes, cost);
  }
  // The engine's part of a storage is gone.
  void drop(const Slot& slot) {
    {
      const Exposed engines;
      engine.release(slot.storage);
    }
    world.drop_storage(slot.token);
  }

  void validate() {
    engine.validate();
    EXPECT_EQ(world.random_state, expected_random_state) << "the random state was not given back";
    engine.graph().values().for_each([&](ValueId, const Value& value) {
      if (running > 0 || !value.is_resident()) return;
      EXPECT_EQ(pool.info(value.block).pins, 0U) << "a pin was not given back";
    });
    for (const Slot& slot : slots) {
      if (!slot.is_held()) continue;
      const auto block = world.block_of(slot.token);
      ASSERT_EQ(block.has_value(), engine.is_resident(slot.storage)) << "the world was not told";
      if (!slot.exported_at) continue;
      ASSERT_TRUE(block) << "somebody has its address";
      ASSERT_EQ(pool.info(*block).offset, *slot.exported_at) << "somebody has its address";
    }
  }
};

}  // namespace coop::testing
