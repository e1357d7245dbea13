#pragma once

// A random program on the hash world, and beside it what its storages would hold without a budget.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "support/hash_world.hpp"
#include "support/random_cases.hpp"

namespace coop::testing {

struct ProgramOptions {
  Bytes pool_bytes = 0;
  const char* policy = "coop";
  int operators = 100;
  Grains largest = 8;
  std::size_t live = 24;  // storages that are about alive at a time
  EngineOptions engine;
  bool is_stressed = false;  // everything is evicted after every operator
  bool is_validated = true;
};

struct ProgramCounts {
  std::uint64_t evictions = 0;
  std::uint64_t replays = 0;
  std::uint32_t deepest = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t in_place = 0;
  std::uint64_t overwritten = 0;
  std::uint64_t sources_written = 0;
  std::uint64_t random = 0;
  std::uint64_t exported = 0;
  std::uint64_t copies_aside = 0;
  std::uint64_t cuts = 0;
  std::uint64_t moves = 0;
};

class RandomProgram {
 public:
  RandomProgram(Case& one, const ProgramOptions& options)
      : case_(one),
        options_(options),
        policy_(make_policy(options.policy, {.seed = one.seed})),
        pool_({.bytes = options.pool_bytes, .fit = policy_->traits().fit, .small_limit = 0},
              backing_),
        world_(pool_.bytes()),
        engine_(pool_, *policy_, world_, options.engine) {
    world_.set_engine(engine_, pool_);
  }

  void run() {
    for (int i = 0; i < options_.operators && !::testing::Test::HasFailure(); ++i) {
      step();
      if (options_.is_stressed) engine_.evict_all();
      if (options_.is_validated) validate();
    }
    for (std::size_t i = 0; i < live_.size() && !::testing::Test::HasFailure(); ++i) check(i);
    while (!live_.empty()) release(0);
    engine_.validate();
    EXPECT_EQ(engine_.graph().values().size(), 0U) << "Values leak";
    EXPECT_EQ(engine_.graph().calls().size(), 0U) << "Calls leak";
    EXPECT_EQ(world_.remembered(), 0U) << "the world's records leak";
    EXPECT_EQ(pool_.held_bytes(), 0U) << "blocks leak";
    counts.evictions = engine_.eviction_stats().evictions;
    counts.moves = engine_.eviction_stats().moves;
    counts.replays = engine_.stats().replays;
    counts.deepest = engine_.stats().deepest_replay;
    counts.copies_aside = engine_.stats().copies_aside;
    counts.cuts = engine_.stats().cuts;
  }

  ProgramCounts counts;

 private:
  struct Tensor {
    StorageId storage;
    Token token = 0;
    Bytes bytes = 0;
    Content expected = 0;
    bool is_exported = false;
  };

  void validate() {
    engine_.validate();
    for (const Tensor& tensor : live_) {
      const bool is_resident = engine_.is_resident(tensor.storage);
      ASSERT_EQ(world_.block_of(tensor.token).has_value(), is_resident) << "the world was not told";
      ASSERT_TRUE(is_resident || !tensor.is_exported) << "somebody has its address";
    }
  }

  Random& random() { return case_.random; }
  Bytes draw_bytes() { return to_bytes(random().between(1, options_.largest)); }
  std::size_t pick() { return random().below(live_.size()); }

  void step() {
    const double lot = random().unit();
    if (live_.size() < 3 || lot < 0.08) {
      add_source();
    } else if (lot < 0.20 || live_.size() > options_.live) {
      release(pick());
    } else if (lot < 0.28) {
      check(pick());
    } else if (lot < 0.29) {
      export_one(pick());
    } else {
      run_operator();
    }
  }

  void add_source() {
    const Bytes bytes = draw_bytes();
    case_.trace("source %llu grains\n", static_cast<unsigned long long>(bytes / kGrainBytes));
    try {
      const BlockId block = engine_.allocate(bytes);
      const Content content = random().next();
      world_.write(block, content);
      const Token token = world_.new_storage();
      live_.push_back({engine_.add_source(token, bytes, block), token, bytes, content});
      case_.trace("  -> %u\n", live_.back().storage.index());
    } catch (const OutOfMemory&) {
      ++counts.out_of_memory;
    }
  }

  void release(std::size_t i) {
    case_.trace("release %u\n", live_[i].storage.index());
    engine_.release(live_[i].storage);
    world_.drop_storage(live_[i].token);
    live_[i] = live_.back();
    live_.pop_back();
  }

  void export_one(std::size_t i) {
    try {
      engine_.export_storage(live_[i].storage);
      live_[i].is_exported = true;
      ++counts.exported;
    } catch (const OutOfMemory&) {
      ++counts.out_of_memory;
    }
  }

  void check(std::size_t i) {
    case_.trace("check %u\n", live_[i].storage.index());
    try {
      engine_.make_resident(live_[i].storage);
      const auto block = world_.block_of(live_[i].token);
      ASSERT_TRUE(block);
      ASSERT_EQ(world_.read(*block), live_[i].expected);
    } catch (const OutOfMemory&) {
      ++counts.out_of_memory;
    }
  }

  // An operator to be run: what it reads and writes, as positions in live_.
  struct Plan {
    std::vector<std::size_t> reads;
    std::vector<std::size_t> writes;
    std::vector<bool> reads_old;  // of each write
    HashOp op;
    bool is_replayable = true;
  };

  Plan draw_operator() {
    Plan plan;
    plan.op.salt = random().next();
    for (int n = random().between(0, 3); n > 0; --n) plan.reads.push_back(pick());
    if (random().chance(0.35)) {
      for (int n = random().chance(0.2) ? 2 : 1; n > 0; --n) {
        const std::size_t target = pick();
        if (std::find(plan.writes.begin(), plan.writes.end(), target) != plan.writes.end())
          continue;
        const bool reads_old = random().chance(0.7);
        plan.writes.push_back(target);
        plan.reads_old.push_back(reads_old);
        plan.op.overwrites.push_back(reads_old ? 0 : live_[target].bytes);
      }
    }
    const int made = plan.writes.empty() ? random().between(1, 3) : random().between(0, 1);
    for (int i = 0; i < made; ++i) plan.op.makes.push_back(draw_bytes());
    plan.op.cost = 1 + 1000 * random().unit();
    plan.op.is_random = random().chance(0.1);
    plan.is_replayable = random().chance(0.9);
    return plan;
  }

  void note(const Plan& plan) {
    case_.trace("operator%s%s:", plan.is_replayable ? "" : " (not replayable)",
                plan.op.is_random ? " (random)" : "");
    for (const std::size_t i : plan.reads) case_.trace(" reads %u", live_[i].storage.index());
    for (std::size_t i = 0; i < plan.writes.size(); ++i) {
      const Tensor& target = live_[plan.writes[i]];
      case_.trace(" %s %u", plan.reads_old[i] ? "changes" : "overwrites", target.storage.index());
      ++(plan.reads_old[i] ? counts.in_place : counts.overwritten);
      const Graph& graph = engine_.graph();
      const Value& value = graph.values()[graph.storages()[target.storage].current];
      if (value.is_source() && value.readers > 0) ++counts.sources_written;
    }
    case_.trace(", makes %zu\n", plan.op.makes.size());
  }

  // Throws OutOfMemory.
  RunningCall begin(const Plan& plan) {
    std::vector<StorageId> reads;
    for (const std::size_t i : plan.reads) reads.push_back(live_[i].storage);
    std::vector<Write> writes;
    for (std::size_t i = 0; i < plan.writes.size(); ++i) {
      writes.push_back({live_[plan.writes[i]].storage, plan.reads_old[i]});
    }
    return engine_.begin_call(reads, writes);
  }

  // Throws OutOfMemory, having freed what it had.
  std::vector<NewOutput> allocate_outputs(const HashOp& op) {
    std::vector<NewOutput> outputs;
    try {
      for (const Bytes bytes : op.makes) {
        outputs.push_back({.block = engine_.allocate(bytes, op.cost), .bytes = bytes});
        outputs.back().storage = world_.new_storage();
      }
    } catch (const OutOfMemory&) {
      for (const NewOutput& output : outputs) {
        engine_.free(output.block);
        world_.drop_storage(output.storage);
      }
      throw;
    }
    return outputs;
  }

  // The operator fails when it had begun to change what it writes where that was; nobody sees what it
  // did to memory that was fresh.
  void fail(const Plan& plan, RunningCall& call) {
    for (std::size_t i = 0; i < plan.writes.size(); ++i) {
      Tensor& target = live_[plan.writes[i]];
      world_.write(*world_.block_of(target.token), 0);
      if (!call.writes[i].fresh) target.expected = 0;
    }
    engine_.abort_call(call);
  }

  // What it reads: as it is in memory, and as it is expected to be.
  struct Inputs {
    std::vector<Content> in_memory;
    std::vector<Content> expected;
  };
  Inputs read_inputs(const Plan& plan) {
    Inputs inputs;
    const auto read = [&](std::size_t i) {
      const auto block = world_.block_of(live_[i].token);
      ASSERT_TRUE(block) << "an input is not there";
      inputs.in_memory.push_back(world_.read(*block));
      inputs.expected.push_back(live_[i].expected);
    };
    for (const std::size_t i : plan.reads) read(i);
    for (std::size_t i = 0; i < plan.writes.size(); ++i) {
      if (plan.reads_old[i]) read(plan.writes[i]);
    }
    return inputs;
  }

  void run_operator() {
    Plan plan = draw_operator();
    note(plan);
    RunningCall call;
    std::vector<NewOutput> outputs;
    bool has_begun = false;
    try {
      call = begin(plan);
      has_begun = true;
      outputs = allocate_outputs(plan.op);
    } catch (const OutOfMemory&) {
      ++counts.out_of_memory;
      if (has_begun) fail(plan, call);
      return;
    }
    if (plan.op.is_random) {
      plan.op.random_state = world_.random_state;
      world_.random_state = mix(world_.random_state, 1);
      ++counts.random;
    }

    const Inputs inputs = read_inputs(plan);
    for (std::size_t i = 0; i < plan.writes.size(); ++i) {
      Tensor& target = live_[plan.writes[i]];
      world_.write(*world_.block_of(target.token),
                   HashWorld::result_of(plan.op, inputs.in_memory, i));
      target.expected = HashWorld::result_of(plan.op, inputs.expected, i);
    }
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::size_t number = plan.writes.size() + i;
      world_.write(outputs[i].block, HashWorld::result_of(plan.op, inputs.in_memory, number));
      made.push_back({.token = outputs[i].storage,
                      .bytes = outputs[i].bytes,
                      .expected = HashWorld::result_of(plan.op, inputs.expected, number)});
    }
    CallResult result{
        .cost = plan.op.cost, .is_replayable = plan.is_replayable, .outputs = outputs};
    if (plan.is_replayable) result.token = world_.remember(std::move(plan.op));
    const auto storages = engine_.end_call(call, result);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].storage = storages[i];
      case_.trace("  -> %u\n", storages[i].index());
      live_.push_back(made[i]);
    }
    // Some outputs die at once.
    if (!made.empty() && random().chance(0.2)) release(live_.size() - 1);
  }

  Case& case_;
  ProgramOptions options_;
  FakeBacking backing_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  HashWorld world_;
  Engine engine_;
  std::vector<Tensor> live_;
};

}  // namespace coop::testing
