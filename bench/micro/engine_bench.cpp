// Recording a Call with three inputs and one output, nothing evicted, by how many Values are alive.
#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/engine/engine.hpp"

namespace coop {
namespace {

// Contents do not matter here.
class NullWorld final : public World {
 public:
  void replay(Token /*call*/, std::span<const BlockId> /*in*/,
              std::span<BlockId> /*out*/) override {}
  void attach(Token /*storage*/, BlockId /*block*/) noexcept override {}
  void detach(Token /*storage*/) noexcept override {}
  void copy(BlockId /*from*/, BlockId /*to*/, Bytes /*bytes*/) override {}
  void relocate(const Token* /*storage*/, BlockId /*block*/, Bytes /*from*/, Bytes /*to*/,
                Bytes /*bytes*/) override {}
  void forget(Token /*call*/) noexcept override {}
};

constexpr Bytes kBytes = Bytes{1} << 20U;

// A training step in small: a chain of operators, each of which reads the two results before it and a
// parameter; then all results are released. `live` tensors are there besides.
class Program {
 public:
  static constexpr std::size_t kLength = 64;

  explicit Program(std::size_t live)
      : policy_(make_policy("coop")),
        pool_({.bytes = (live + kLength + 8) * 2 * kBytes, .fit = policy_->traits().fit}, backing_),
        engine_(pool_, *policy_, world_) {
    while (parameters_.size() < live) {
      parameters_.push_back(engine_.add_source(0, kBytes, engine_.allocate(kBytes)));
    }
    results_.reserve(kLength + 2);
  }

  BlockId allocate() { return engine_.allocate(kBytes, 1000); }
  void begin_step() { results_.assign({parameters_[0], parameters_[1]}); }
  void call(BlockId output) {
    next_parameter_ = (next_parameter_ + 1) % parameters_.size();
    const std::array<StorageId, 3> reads{results_.back(), results_[results_.size() - 2],
                                         parameters_[next_parameter_]};
    RunningCall running = engine_.begin_call(reads, {});
    const std::array<NewOutput, 1> outputs{
        NewOutput{.block = output, .storage = 0, .bytes = kBytes}};
    const CallResult result{.token = 0, .cost = 1000, .is_replayable = true, .outputs = outputs};
    results_.push_back(engine_.end_call(running, result).front());
  }
  void end_step() {
    for (; results_.size() > 2; results_.pop_back()) engine_.release(results_.back());
  }

 private:
  FakeBacking backing_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  NullWorld world_;
  Engine engine_;
  std::vector<StorageId> parameters_;
  std::vector<StorageId> results_;
  std::size_t next_parameter_ = 0;
};

// Of this thread: whatever else runs on the machine is of no concern.
std::chrono::nanoseconds processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// begin_call and end_call alone.
void record_call(benchmark::State& state) {
  Program program(static_cast<std::size_t>(state.range(0)));
  std::array<BlockId, Program::kLength> blocks;
  for (auto _ : state) {
    program.begin_step();
    for (BlockId& block : blocks) block = program.allocate();
    const auto began = processor_time();
    for (const BlockId block : blocks) program.call(block);
    const std::chrono::duration<double> took = processor_time() - began;
    state.SetIterationTime(took.count() / static_cast<double>(blocks.size()));
    program.end_step();
  }
}
BENCHMARK(record_call)->Arg(100)->Arg(1'000)->Arg(10'000)->UseManualTime();

// With the output's memory, and until the result is released: per Call.
void life_of_a_call(benchmark::State& state) {
  Program program(static_cast<std::size_t>(state.range(0)));
  while (state.KeepRunningBatch(Program::kLength)) {
    program.begin_step();
    for (std::size_t i = 0; i < Program::kLength; ++i) program.call(program.allocate());
    program.end_step();
  }
}
BENCHMARK(life_of_a_call)->Arg(100)->Arg(1'000)->Arg(10'000);

}  // namespace
}  // namespace coop
