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
// request fits. Both policies get the same pool, made anew with another seed for each request. Requests
// are sorted by how many blocks the other policy had to evict: that, not the size, is what its search
// costs. Reported: the ratio of the two times.
struct Bin {
  double least_evictions;
  const char* name;
  double requests = 0;
  double coop_ns = 0;
  double other_ns = 0;
  double least_ratio = 0;
};

std::uint64_t serve(const char* name, std::size_t pieces, double window, std::uint64_t seed,
                    double& evictions) {
  const auto policy = make_policy(name);
  FullPool full(pieces, policy->traits().fit, seed);
  const Request request = full.request(window);
  // Once for warmth: a search in a program finds its pool in the cache.
  std::vector<BlockId> victims;
  policy->choose_victims(full.pool(), request, victims);
  ForgetfulOwner owner;
  EvictingPool evicting(full.pool(), *policy, owner);
  evicting.allocate(request);
  evictions = static_cast<double>(evicting.stats().evictions);
  return evicting.stats().search_ns;
}

void serve_requests(benchmark::State& state, const char* other) {
  const auto pieces = static_cast<std::size_t>(state.range(0));
  std::vector<Bin> bins{{1, "01"},  {2, "02"},  {10, "10"},  {15, "15"},
                        {20, "20"}, {50, "50"}, {200, "200"}};
  std::uint64_t seed = 0;
  for (auto _ : state) {
    const double window = 1 + static_cast<double>(seed % 60) / 5;  // 1 to 13 pieces
    ++seed;
    double evictions = 0;
    double coop_evictions = 0;
    const auto other_ns = static_cast<double>(serve(other, pieces, window, seed, evictions));
    const auto coop_ns = static_cast<double>(serve("coop", pieces, window, seed, coop_evictions));
    auto bin = bins.rbegin();
    while (bin + 1 != bins.rend() && evictions < bin->least_evictions) ++bin;
    const double ratio = other_ns / coop_ns;
    bin->least_ratio = bin->requests == 0 ? ratio : std::min(bin->least_ratio, ratio);
    bin->requests += 1;
    bin->coop_ns += coop_ns;
    bin->other_ns += other_ns;
  }
  for (const Bin& bin : bins) {
    if (bin.requests == 0) continue;
    const std::string from = std::string(bin.name) + "_";
    state.counters[from + "requests"] = bin.requests;
    state.counters[from + "coop_us"] = bin.coop_ns / bin.requests / 1e3;
    state.counters[from + "other_us"] = bin.other_ns / bin.requests / 1e3;
    state.counters[from + "ratio"] = bin.other_ns / bin.coop_ns;
    state.counters[from + "least"] = bin.least_ratio;
  }
}
BENCHMARK_CAPTURE(serve_requests, dtr, "dtr")
    ->Arg(1'000)
    ->Arg(10'000)
    ->Unit(benchmark::kMillisecond)
    ->MinTime(4);
BENCHMARK_CAPTURE(serve_requests, dte, "dte")
    ->Arg(1'000)
    ->Arg(10'000)
    ->Unit(benchmark::kMillisecond)
    ->MinTime(4);

}  // namespace
}  // namespace coop::bench
