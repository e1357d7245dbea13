// The pool under a synthetic load: what does each policy evict, and what does it cost?
//
// The load is shaped like the training of a convolutional network: in the forward pass every layer
// makes one expensive block (a convolution) and two cheap ones (norm, activation); the backward
// pass needs them again, last layer first. A block that was evicted is made again at its cost,
// alone: what hangs on what is the engine's business, and not modelled here.

#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/bytes.hpp"
#include "core/base/errors.hpp"
#include "core/cost/density_split.hpp"
#include "core/engine/evicting_pool.hpp"
#include "core/policy/policy.hpp"
#include "core/pool/pool.hpp"

namespace {

using namespace coop;

struct Options {
  std::uint64_t seed = 1;
  int layers = 120;
  int steps = 10;
  double ratio = 0.5;
  bool json = false;
};

struct Tensor {
  Bytes bytes = 0;
  double cost = 0;  // nanoseconds to make it
};

// Deterministic everywhere: the standard's distributions are not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  // Between the two, in whole grains.
  Bytes bytes(Bytes low, Bytes high) {
    return (low + bits_() % (high - low)) / kGrainBytes * kGrainBytes;
  }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(bits_() >> 11U) * 0x1p-53;
  }

 private:
  std::mt19937_64 bits_;
};

std::vector<Tensor> make_network(const Options& options) {
  Dice dice(options.seed);
  std::vector<Tensor> tensors;
  for (int layer = 0; layer < options.layers; ++layer) {
    const Bytes bytes = dice.bytes(4_MiB, 64_MiB);
    const auto size = static_cast<double>(bytes);
    tensors.push_back({bytes, size * dice.between(0.006, 0.02)});     // convolution
    tensors.push_back({bytes, size * dice.between(0.0008, 0.0012)});  // norm
    tensors.push_back({bytes, size * dice.between(0.0004, 0.0006)});  // activation
  }
  return tensors;
}

Bytes total_bytes(const std::vector<Tensor>& tensors) {
  Bytes total = 0;
  for (const Tensor& tensor : tensors) total += tensor.bytes;
  return total;
}

struct Result {
  std::string policy;
  EvictionStats stats;
  double base_ns = 0;
  double recomputed_ns = 0;
};

class Training final : public BlockOwner {
 public:
  Training(const Options& options, const std::vector<Tensor>& tensors, Bytes budget,
           const PolicyTraits& traits)
      : options_(options),
        tensors_(tensors),
        policy_(make_policy(traits.name, {.seed = options.seed})),
        pool_({.bytes = budget, .fit = traits.fit}, backing_),
        evicting_(pool_, *policy_, *this),
        blocks_(tensors.size()) {}

  Result run() {
    for (int step = 0; step < options_.steps; ++step) {
      for (std::size_t i = 0; i < tensors_.size(); ++i) use(i);
      for (std::size_t i = tensors_.size(); i-- > 0;) {
        use(i);
        static_cast<void>(pool_.free(blocks_[i]));
      }
      made_.assign(tensors_.size(), false);
    }
    return {std::string(policy_->traits().name), evicting_.stats(), base_ns_, recomputed_ns_};
  }

  void evict(BlockId id) override {
    static_cast<void>(id);  // use() sees that the block is gone
  }
  void relocate(BlockId /*id*/, Bytes /*from*/, Bytes /*to*/, Bytes /*bytes*/) override {}

 private:
  void use(std::size_t i) {
    const Tensor& tensor = tensors_[i];
    if (pool_.contains(blocks_[i])) {
      pool_.touch(blocks_[i], now_);
    } else {
      const bool is_cheap =
          policy_->traits().keeps_cheap_apart && split_.is_cheap(tensor.cost, tensor.bytes);
      const Placement placement = is_cheap ? Placement::kCheap : Placement::kExpensive;
      blocks_[i] = evicting_.allocate({tensor.bytes, placement, now_});
      (made_[i] ? recomputed_ns_ : base_ns_) += tensor.cost;
      made_[i] = true;
      now_ += tensor.cost;
      split_.observe(tensor.cost, tensor.bytes);
      pool_.set_evictable(blocks_[i], tensor.cost, now_);
    }
    // The operator's own work.
    now_ += tensor.cost;
    base_ns_ += tensor.cost;
  }

  const Options& options_;
  const std::vector<Tensor>& tensors_;
  std::unique_ptr<Policy> policy_;
  FakeBacking backing_;
  Pool pool_;
  EvictingPool evicting_;
  DensitySplit split_;
  std::vector<BlockId> blocks_;
  std::vector<bool> made_ = std::vector<bool>(tensors_.size(), false);
  double now_ = 0;
  double base_ns_ = 0;
  double recomputed_ns_ = 0;
};

void print_table(const Options& options, Bytes peak, Bytes budget,
                 const std::vector<Result>& results) {
  std::printf("A network of %d layers needs %s; it gets %s (%.0f%%). %d steps, seed %llu.\n\n",
              options.layers, format_bytes(peak).c_str(), format_bytes(budget).c_str(),
              options.ratio * 100, options.steps, static_cast<unsigned long long>(options.seed));
  std::printf("%-12s %9s %11s %12s %14s %9s %12s\n", "policy", "evicted", "bytes", "recomputed",
              "fragmentation", "searches", "us a search");
  for (const Result& r : results) {
    const double per_search = r.stats.searches == 0 ? 0
                                                    : static_cast<double>(r.stats.search_ns) / 1e3 /
                                                          static_cast<double>(r.stats.searches);
    std::printf("%-12s %9llu %11s %11.1f%% %13.2f%% %9llu %12.2f\n", r.policy.c_str(),
                static_cast<unsigned long long>(r.stats.evictions),
                format_bytes(r.stats.evicted_bytes).c_str(), 100 * r.recomputed_ns / r.base_ns,
                100 * r.stats.fragmentation(), static_cast<unsigned long long>(r.stats.searches),
                per_search);
  }
  std::printf(
      "\nrecomputed: time to make evicted blocks again, over all other time. fragmentation: what "
      "was\n"
      "free of the pool, on average, when an allocation that had to evict had been served.\n");
}

void print_json(const Options& options, Bytes peak, Bytes budget,
                const std::vector<Result>& results) {
  std::printf(
      "{\"layers\": %d, \"steps\": %d, \"seed\": %llu, \"peak_bytes\": %llu, \"budget_bytes\": "
      "%llu, \"policies\": [",
      options.layers, options.steps, static_cast<unsigned long long>(options.seed),
      static_cast<unsigned long long>(peak), static_cast<unsigned long long>(budget));
  const char* separator = "";
  for (const Result& r : results) {
    std::printf(
        "%s\n  {\"policy\": \"%s\", \"evictions\": %llu, \"evicted_bytes\": %llu, \"base_ns\": "
        "%.0f, "
        "\"recomputed_ns\": %.0f, \"fragmentation\": %.6f, \"searches\": %llu, \"search_ns\": "
        "%llu}",
        separator, r.policy.c_str(), static_cast<unsigned long long>(r.stats.evictions),
        static_cast<unsigned long long>(r.stats.evicted_bytes), r.base_ns, r.recomputed_ns,
        r.stats.fragmentation(), static_cast<unsigned long long>(r.stats.searches),
        static_cast<unsigned long long>(r.stats.search_ns));
    separator = ",";
  }
  std::printf("\n]}\n");
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("The pool under a synthetic load: what each policy evicts, and what it costs.");
  app.add_option("--layers", options.layers, "layers of the network")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "training steps")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--ratio", options.ratio, "budget over what the network needs")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the network's sizes and costs")->capture_default_str();
  app.add_flag("--json", options.json, "print JSON instead of a table");
  app.footer("Example: coop-pool-demo --layers 500 --ratio 0.4 --json");
  CLI11_PARSE(app, argc, argv);

  const std::vector<Tensor> tensors = make_network(options);
  const Bytes peak = total_bytes(tensors);
  const auto budget = static_cast<Bytes>(static_cast<double>(peak) * options.ratio);
  std::vector<Result> results;
  for (const PolicyTraits& traits : known_policies()) {
    results.push_back(Training(options, tensors, budget, traits).run());
  }
  (options.json ? print_json : print_table)(options, peak, budget, results);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const coop::OutOfMemory& error) {
    std::fprintf(stderr, "error: %s\nThis network does not fit: give it more with --ratio.\n",
                 error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
