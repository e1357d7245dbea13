// Several threads in one engine. Memory is plain memory: where two threads are given the same, or a replay
// reads what another thread writes, contents come out wrong, and the thread sanitizer says where.
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "support/hash_world.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

using testing::Content;
using testing::mix;
using testing::Random;

constexpr Bytes kSize = to_bytes(2);
constexpr std::size_t kWords = kSize / sizeof(Content);

struct Op {
  Content salt = 0;
  bool changes = false;  // the first output is an input that it changes
};

class ThreadedWorld final : public World {
 public:
  explicit ThreadedWorld(Pool& pool) : pool_(pool) {}
  void set_engine(Engine& engine) { engine_ = &engine; }

  static Content read(const std::byte* address) {
    const auto* words = reinterpret_cast<const Content*>(address);
    for (std::size_t i = 0; i < kWords; ++i) {
      if (words[i] != mix(words[0], i) && i > 0) ADD_FAILURE() << "memory was used by two";
    }
    return words[0];
  }
  static void write(std::byte* address, Content content) {
    auto* words = reinterpret_cast<Content*>(address);
    words[0] = content;
    for (std::size_t i = 1; i < kWords; ++i) words[i] = mix(content, i);
  }
  static Content result_of(Content salt, std::span<const Content> inputs) {
    for (const Content input : inputs) salt = mix(salt, input);
    return salt;
  }

  Token remember(Op op) {
    const std::lock_guard lock(mutex_);
    ops_.emplace(++last_token_, op);
    return last_token_;
  }
  [[nodiscard]] std::size_t remembered() {
    const std::lock_guard lock(mutex_);
    return ops_.size();
  }
  Token new_storage() {
    const std::lock_guard lock(mutex_);
    return ++last_token_;
  }
  BlockId block_of(Token storage) {
    const std::lock_guard lock(mutex_);
    return attached_.at(storage);
  }

  void replay(Token call, std::span<const BlockId> inputs, std::span<BlockId> outputs) override {
    Op op;
    {
      const std::lock_guard lock(mutex_);
      op = ops_.at(call);
    }
    std::vector<Content> contents;
    for (const BlockId input : inputs) contents.push_back(read(engine_->address(input)));
    std::this_thread::yield();
    if (!op.changes) outputs[0] = engine_->allocate(kSize, 100);
    write(engine_->address(outputs[0]), result_of(op.salt, contents));
  }
  void attach(Token storage, BlockId block) noexcept override {
    const std::lock_guard lock(mutex_);
    attached_[storage] = block;
  }
  void detach(Token storage) noexcept override {
    const std::lock_guard lock(mutex_);
    attached_.erase(storage);
  }
  void copy(BlockId from, BlockId to, Bytes /*bytes*/) override {
    write(pool_.address(to), read(pool_.address(from)));
  }
  void relocate(const Token* /*storage*/, BlockId block, Bytes from, Bytes to,
                Bytes /*bytes*/) override {
    std::byte* const address = pool_.address(block);
    write(address - from + to, read(address));
  }
  void forget(Token call) noexcept override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(ops_.erase(call), 1U) << "a call was forgotten twice";
  }

 private:
  Pool& pool_;
  Engine* engine_ = nullptr;
  std::mutex mutex_;
  std::unordered_map<Token, Op> ops_;
  std::unordered_map<Token, BlockId> attached_;
  Token last_token_ = 0;
};

struct Tensor {
  StorageId storage;
  Token token = 0;
  Content expected = 0;
};

// What all threads share: the parameters, which all read and some write, as a program would have it, one
// at a time.
struct Shared {
  Shared(Engine& an_engine, ThreadedWorld& a_world) : engine(an_engine), world(a_world) {}
  Engine& engine;
  ThreadedWorld& world;
  std::shared_mutex mutex;
  std::vector<Tensor> parameters;
};

class Worker {
 public:
  Worker(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed) {}

  void run(int operators) {
    for (int i = 0; i < operators && !::testing::Test::HasFailure(); ++i) {
      try {
        step();
      } catch (const OutOfMemory&) {
        ++out_of_memory;
        if (!live_.empty()) release(random_.below(live_.size()));
      }
    }
    while (!live_.empty()) release(live_.size() - 1);
  }

  int out_of_memory = 0;
  int parameters_written = 0;

 private:
  void step() {
    const double lot = random_.unit();
    if (live_.empty() || lot < 0.1) {
      const std::shared_lock lock(shared_.mutex);
      make({&shared_.parameters[random_.below(shared_.parameters.size())]});
    } else if (lot < 0.2 || live_.size() > 10) {
      release(random_.below(live_.size()));
    } else if (lot < 0.25) {
      const std::unique_lock lock(shared_.mutex);
      change(shared_.parameters[random_.below(shared_.parameters.size())]);
      ++parameters_written;
    } else if (lot < 0.45) {
      change(live_[random_.below(live_.size())]);
    } else if (lot < 0.5) {
      shared_.engine.make_resident(live_[random_.below(live_.size())].storage);
    } else if (lot < 0.52) {
      shared_.engine.evict_all();
    } else {
      make({&live_[random_.below(live_.size())], &live_[random_.below(live_.size())]});
    }
  }

  Content read(const Tensor& tensor) {
    const Content content =
        ThreadedWorld::read(shared_.engine.address(shared_.world.block_of(tensor.token)));
    EXPECT_EQ(content, tensor.expected);
    return content;
  }

  void make(const std::vector<const Tensor*>& reads) {
    std::vector<StorageId> storages;
    for (const Tensor* tensor : reads) storages.push_back(tensor->storage);
    RunningCall call = shared_.engine.begin_call(storages, {});
    std::vector<Content> contents;
    for (const Tensor* tensor : reads) contents.push_back(read(*tensor));
    NewOutput output{.bytes = kSize};
    try {
      output.block = shared_.engine.allocate(kSize, 100);
    } catch (...) {
      shared_.engine.abort_call(call);
      throw;
    }
    const Op op{.salt = random_.next()};
    const Content content = ThreadedWorld::result_of(op.salt, contents);
    ThreadedWorld::write(shared_.engine.address(output.block), content);
    output.storage = shared_.world.new_storage();
    const auto made = shared_.engine.end_call(call, {.token = shared_.world.remember(op),
                                                     .cost = 100,
                                                     .is_replayable = true,
                                                     .outputs = {&output, 1}});
    live_.push_back({made.front(), output.storage, content});
  }

  void change(Tensor& tensor) {
    const Write write{.storage = tensor.storage};
    RunningCall call = shared_.engine.begin_call({}, {&write, 1});
    const Content before = read(tensor);
    const Op op{.salt = random_.next(), .changes = true};
    tensor.expected = ThreadedWorld::result_of(op.salt, {&before, 1});
    ThreadedWorld::write(shared_.engine.address(shared_.world.block_of(tensor.token)),
                         tensor.expected);
    shared_.engine.end_call(
        call, {.token = shared_.world.remember(op), .cost = 100, .is_replayable = true});
  }

  void release(std::size_t index) {
    shared_.engine.release(live_[index].storage);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  Shared& shared_;
  Random random_;
  std::vector<Tensor> live_;
};

TEST(EngineThreads, EachComputesWhatItWouldAlone) {
  constexpr std::size_t kThreads = 4;
  std::uint64_t replays = 0;
  int written = 0;
  for (std::uint64_t seed = 0; seed < testing::scaled(40); ++seed) {
    HostBacking backing;
    const auto policies = known_policies();
    const auto policy = make_policy(policies[seed % policies.size()].name, {.seed = seed});
    Pool pool({.bytes = 30 * kSize, .fit = policy->traits().fit, .small_limit = 0}, backing);
    ThreadedWorld world(pool);
    Engine engine(pool, *policy, world);
    world.set_engine(engine);
    Shared shared(engine, world);
    for (Content i = 0; i < 4; ++i) {
      const BlockId block = engine.allocate(kSize);
      ThreadedWorld::write(engine.address(block), i);
      const Token token = world.new_storage();
      shared.parameters.push_back({engine.add_source(token, kSize, block), token, i});
    }
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      workers.push_back(std::make_unique<Worker>(shared, seed * kThreads + i));
      threads.emplace_back([&worker = *workers.back()] { worker.run(400); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& worker : workers) written += worker->parameters_written;
    for (const Tensor& parameter : shared.parameters) engine.release(parameter.storage);
    engine.validate();
    EXPECT_EQ(pool.held_bytes(), 0U);
    EXPECT_EQ(world.remembered(), 0U);
    replays += engine.stats().replays;
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(replays, 100U);
  EXPECT_GT(written, 10);
}

}  // namespace
}  // namespace coop
