// Allocating and freeing while nothing has to be evicted: one allocation and one free per round, in
// a pool that holds many blocks.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/pool/pool.hpp"
#include "support/random_cases.hpp"

namespace coop {
namespace {

constexpr Bytes kMean = Bytes{1} << 20U;

// Sizes and kinds of blocks, drawn beforehand: random numbers are not what is measured.
struct Draw {
  Bytes bytes;
  Placement placement;
  std::size_t victim;
};

std::vector<Draw> draw(std::size_t blocks, std::size_t n) {
  testing::Random random(1);
  std::vector<Draw> draws;
  for (std::size_t i = 0; i < n; ++i) {
    draws.push_back({kMean / 2 + random.below(kMean), static_cast<Placement>(random.below(3)),
                     random.below(blocks)});
  }
  return draws;
}

// A pool of which four fifths are held by `blocks` blocks, with holes everywhere.
class BusyPool {
 public:
  BusyPool(std::size_t blocks, Fit fit)
      : pool_({.bytes = blocks * kMean * 5 / 4, .fit = fit, .small_limit = 0}, backing_) {
    const auto draws = draw(blocks, blocks * 2);
    for (std::size_t i = 0; i < blocks; ++i) held_.push_back(allocate(draws[i]));
    for (std::size_t i = blocks; i < 2 * blocks; ++i) replace(draws[i]);
  }
  BlockId allocate(const Draw& draw) { return *pool_.allocate(draw.bytes, draw.placement); }
  bool replace(const Draw& draw) {
    const bool was_there = pool_.free(held_[draw.victim]);
    held_[draw.victim] = allocate(draw);
    return was_there;
  }
  Pool& pool() { return pool_; }

 private:
  FakeBacking backing_;
  Pool pool_;
  std::vector<BlockId> held_;
};

// A block that is freed as soon as it was used: what most operators ask for.
void allocate_temporary(benchmark::State& state, Fit fit) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  BusyPool busy(blocks, fit);
  const auto draws = draw(blocks, 4096);
  std::size_t round = 0;
  for (auto _ : state) {
    const BlockId block = busy.allocate(draws[round++ % draws.size()]);
    benchmark::DoNotOptimize(busy.pool().free(block));
  }
}

// A training step: blocks are allocated one after the other, and freed in the reverse order.
void allocate_step(benchmark::State& state, Fit fit) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  FakeBacking backing;
  Pool pool({.bytes = blocks * kMean * 5 / 4, .fit = fit, .small_limit = 0}, backing);
  const auto draws = draw(blocks, blocks);
  std::vector<BlockId> held(blocks);
  for (auto _ : state) {
    for (std::size_t i = 0; i < blocks; ++i) {
      held[i] = *pool.allocate(draws[i].bytes, draws[i].placement);
    }
    for (std::size_t i = blocks; i-- > 0;) benchmark::DoNotOptimize(pool.free(held[i]));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// Blocks replaced at random, the worst there is: nothing in caches, no branch that can be guessed.
void allocate_churn(benchmark::State& state, Fit fit) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  BusyPool busy(blocks, fit);
  const auto draws = draw(blocks, 4096);
  std::size_t round = 0;
  for (auto _ : state) benchmark::DoNotOptimize(busy.replace(draws[round++ % draws.size()]));
}

void allocate_small(benchmark::State& state) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  FakeBacking backing;
  Pool pool({.bytes = Bytes{16} << 30U}, backing);
  const auto draws = draw(blocks, 4096 + blocks);
  const auto small = [&](std::size_t i) {
    return *pool.allocate(draws[i].bytes % 65536 + 1, Placement::kCheap);
  };
  std::vector<BlockId> held;
  while (held.size() < blocks) held.push_back(small(held.size()));
  std::size_t round = 0;
  for (auto _ : state) {
    BlockId& victim = held[draws[round++ % draws.size()].victim];
    benchmark::DoNotOptimize(pool.free(victim));
    victim = small(round % draws.size());
  }
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1'000)->Arg(10'000)->Arg(100'000);
}
BENCHMARK_CAPTURE(allocate_temporary, from_ends, Fit::kFromEnds)->Apply(sizes);
BENCHMARK_CAPTURE(allocate_step, from_ends, Fit::kFromEnds)->Apply(sizes);
BENCHMARK_CAPTURE(allocate_churn, from_ends, Fit::kFromEnds)->Apply(sizes);
BENCHMARK_CAPTURE(allocate_temporary, best_fit, Fit::kBest)->Apply(sizes);
BENCHMARK_CAPTURE(allocate_step, best_fit, Fit::kBest)->Apply(sizes);
BENCHMARK_CAPTURE(allocate_churn, best_fit, Fit::kBest)->Apply(sizes);
BENCHMARK(allocate_small)->Apply(sizes);

}  // namespace
}  // namespace coop
