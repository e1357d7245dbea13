// The search for victims: one window against one block at a time, on the same pools.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "full_pool.hpp"

namespace coop::bench {
namespace {

// One call of choose_victims: for a window policy the whole search, for the others one victim of
// many.
void choose_once(benchmark::State& state, const char* name) {
  const auto policy = make_policy(name);
  FullPool full(static_cast<std::size_t>(state.range(0)), policy->traits().fit, 1);
  std::vector<BlockId> victims;
  for (auto _ : state) {
    victims.clear();
    policy->choose_victims(full.pool(), full.request(static_cast<double>(state.range(1))), victims);
    benchmark::DoNotOptimize(victims.data());
  }
  state.counters["blocks"] = static_cast<double>(state.range(0));
}
const std::vector<std::vector<int64_t>> kSizes{{1'000, 10'000, 100'000}, {4, 10, 30, 100, 300}};
BENCHMARK_CAPTURE(choose_once, coop, "coop")->ArgsProduct(kSizes)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(choose_once, dtr, "dtr")
    ->ArgsProduct({{1'000, 10'000, 100'000}, {30}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(choose_once, dte, "dte")
    ->ArgsProduct({{1'000, 10'000, 100'000}, {30}})
    ->Unit(benchmark::kMicrosecond);

// A request served from a full pool, search time alone: as many calls as the policy needs until the
// request fits. The pool is made anew, with another seed, for each request.
void serve_request(benchmark::State& state, const char* name) {
  const auto policy = make_policy(name);
  ForgetfulOwner owner;
  double evictions = 0;
  std::uint64_t seed = 0;
  for (auto _ : state) {
    FullPool full(static_cast<std::size_t>(state.range(0)), policy->traits().fit, ++seed);
    EvictingPool evicting(full.pool(), *policy, owner);
    evicting.allocate(full.request(static_cast<double>(state.range(1))));
    state.SetIterationTime(static_cast<double>(evicting.stats().search_ns) * 1e-9);
    evictions += static_cast<double>(evicting.stats().evictions);
  }
  state.counters["evictions"] = evictions / static_cast<double>(state.iterations());
}
const std::vector<std::vector<int64_t>> kRequests{{1'000, 10'000}, {1, 2, 4, 10, 30}};
#define COOP_SERVE(policy)                          \
  BENCHMARK_CAPTURE(serve_request, policy, #policy) \
      ->ArgsProduct(kRequests)                      \
      ->UseManualTime()                             \
      ->Iterations(20)                              \
      ->Unit(benchmark::kMicrosecond)
COOP_SERVE(coop);
COOP_SERVE(dtr);
COOP_SERVE(dte);

}  // namespace
}  // namespace coop::bench
