#pragma once

// A random program on the hash world, and beside it what its storages would hold without a budget.

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

  void run_operator() {
    std::vector<std::size_t> reads;
    for (int n = random().between(0, 3); n > 0; --n) reads.push_back(pick());
    std::vector<std::size_t> writes;
    std::vector<Write> engine_writes;
    HashOp op{.salt = random().next()};
    const double kind = random().unit();
    if (kind < 0.35) {
      for (int n = random().chance(0.2) ? 2 : 1; n > 0; --n) {
        const std::size_t target = pick();
        if (std::find(writes.begin(), writes.end(), target) != writes.end()) continue;
        const bool reads_old = random().chance(0.7);
        writes.push_back(target);
        engine_writes.push_back({live_[target].storage, reads_old});
        op.overwrites.push_back(reads_old ? 0 : live_[target].bytes);
        ++(reads_old ? counts.in_place : counts.overwritten);
      }
    }
    const int made = writes.empty() ? random().between(1, 3) : random().between(0, 1);
    for (int i = 0; i < made; ++i) op.makes.push_back(draw_bytes());
    op.cost = 1 + 1000 * random().unit();
    op.is_random = random().chance(0.1);
    const bool is_replayable = random().chance(0.9);

    std::vector<StorageId> engine_reads;
    for (const std::size_t i : reads) engine_reads.push_back(live_[i].storage);
    for (const std::size_t i : writes) {
      const Value& value =
          engine_.graph().values()[engine_.graph().storages()[live_[i].storage].current];
      if (value.is_source() && value.readers > 0) ++counts.sources_written;
    }
    case_.trace("operator%s%s:", is_replayable ? "" : " (not replayable)",
                op.is_random ? " (random)" : "");
    for (const StorageId storage : engine_reads) case_.trace(" reads %u", storage.index());
    for (const Write& write : engine_writes) {
      case_.trace(" %s %u", write.reads_old ? "changes" : "overwrites", write.storage.index());
    }
    case_.trace(", makes %d\n", made);
    RunningCall call;
    try {
      call = engine_.begin_call(engine_reads, engine_writes);
    } catch (const OutOfMemory&) {
      ++counts.out_of_memory;
      return;
    }
    std::vector<NewOutput> outputs;
    try {
      for (const Bytes bytes : op.makes) {
        outputs.push_back({.block = engine_.allocate(bytes, op.cost),
                           .storage = world_.new_storage(),
                           .bytes = bytes});
      }
    } catch (const OutOfMemory&) {
      ++counts.out_of_memory;
      for (const NewOutput& output : outputs) {
        engine_.free(output.block);
        world_.drop_storage(output.storage);
      }
      // The operator had begun to change what it writes where that was; nobody saw what it did to
      // memory that was fresh.
      for (std::size_t i = 0; i < writes.size(); ++i) {
        const BlockId block = *world_.block_of(live_[writes[i]].token);
        world_.write(block, 0);
        if (!call.writes[i].fresh) live_[writes[i]].expected = 0;
      }
      engine_.abort_call(call);
      return;
    }
    if (op.is_random) {
      op.random_state = world_.random_state;
      world_.random_state = mix(world_.random_state, 1);
      ++counts.random;
    }

    // The operator itself: it reads what is in memory; what is expected comes from what is expected.
    std::vector<Content> in_memory;
    std::vector<Content> expected;
    const auto read = [&](std::size_t i) {
      const auto block = world_.block_of(live_[i].token);
      ASSERT_TRUE(block) << "an input is not there";
      in_memory.push_back(world_.read(*block));
      expected.push_back(live_[i].expected);
    };
    for (const std::size_t i : reads) read(i);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (engine_writes[i].reads_old) read(writes[i]);
    }
    for (std::size_t i = 0; i < writes.size(); ++i) {
      world_.write(*world_.block_of(live_[writes[i]].token),
                   HashWorld::result_of(op, in_memory, i));
      live_[writes[i]].expected = HashWorld::result_of(op, expected, i);
    }
    std::vector<Content> made_contents;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      world_.write(outputs[i].block, HashWorld::result_of(op, in_memory, writes.size() + i));
      made_contents.push_back(HashWorld::result_of(op, expected, writes.size() + i));
    }
    const double cost = op.cost;
    const Token token = is_replayable ? world_.remember(std::move(op)) : 0;
    const auto storages = engine_.end_call(
        call, {.token = token, .cost = cost, .is_replayable = is_replayable, .outputs = outputs});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      case_.trace("  -> %u\n", storages[i].index());
      live_.push_back({storages[i], outputs[i].storage, outputs[i].bytes, made_contents[i]});
    }
    // Some outputs die at once.
    if (!outputs.empty() && random().chance(0.2)) release(live_.size() - 1);
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
