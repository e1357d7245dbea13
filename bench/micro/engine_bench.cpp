// Recording a Call: three inputs, one output, nothing evicted, by how many Values are alive.
#include <deque>
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

void record_call(benchmark::State& state) {
  const auto live = static_cast<std::size_t>(state.range(0));
  constexpr Bytes kBytes = Bytes{1} << 20U;
  FakeBacking backing;
  const auto policy = make_policy("coop");
  Pool pool({.bytes = (live + 8) * 2 * kBytes, .fit = policy->traits().fit}, backing);
  NullWorld world;
  Engine engine(pool, *policy, world);
  std::deque<StorageId> storages;
  while (storages.size() < live)
    storages.push_back(engine.add_source(0, kBytes, engine.allocate(kBytes)));
  for (auto _ : state) {
    const std::array<StorageId, 3> reads{storages[live - 1], storages[live / 2],
                                         storages[live - 2]};
    RunningCall call = engine.begin_call(reads, {});
    const std::array<NewOutput, 1> outputs{
        NewOutput{.block = engine.allocate(kBytes, 1000), .storage = 0, .bytes = kBytes}};
    storages.push_back(
        engine.end_call(call, {.token = 0, .cost = 1000, .is_replayable = true, .outputs = outputs})
            .front());
    engine.release(storages.front());
    storages.pop_front();
  }
}
BENCHMARK(record_call)->Arg(100)->Arg(1'000)->Arg(10'000);

}  // namespace
}  // namespace coop
