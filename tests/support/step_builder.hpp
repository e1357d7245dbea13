#pragma once

// Records of steps for tests: written by hand, or random.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/step_record.hpp"
#include "support/random_cases.hpp"

namespace coop::testing {

class StepBuilder {
 public:
  using Storage = std::uint32_t;
  struct Call {
    std::vector<Storage> reads;
    std::vector<StepRecord::Write> writes;
    std::vector<Bytes> makes;
    double cost = 1;
    Bytes workspace = 0;
    bool is_replayable = true;
  };

  Storage there(Bytes bytes, bool is_source = true) {
    return add({.bytes = bytes, .is_there = true, .is_source = is_source});
  }
  Storage source(Bytes bytes) {
    const Storage storage = add({.bytes = bytes, .is_source = true});
    record_.events.push_back({StepRecord::Kind::kSource, storage});
    return storage;
  }
  // Returns the first storage that it makes; the others follow.
  Storage call(const Call& call) {
    const auto first = static_cast<Storage>(record_.storages.size());
    for (const Storage storage : call.reads) record_.reads.push_back(storage);
    for (const StepRecord::Write& write : call.writes) record_.writes.push_back(write);
    for (const Bytes bytes : call.makes) record_.makes.push_back(add({.bytes = bytes}));
    record_.events.push_back(
        {StepRecord::Kind::kCall, static_cast<std::uint32_t>(record_.calls.size())});
    record_.calls.push_back({.cost = call.cost,
                             .workspace = call.workspace,
                             .is_replayable = call.is_replayable,
                             .reads_end = static_cast<std::uint32_t>(record_.reads.size()),
                             .writes_end = static_cast<std::uint32_t>(record_.writes.size()),
                             .makes_end = static_cast<std::uint32_t>(record_.makes.size())});
    return first;
  }
  void end_lineage(Storage storage) {
    record_.events.push_back({StepRecord::Kind::kEndLineage, storage});
  }
  void release(Storage storage) { record_.events.push_back({StepRecord::Kind::kRelease, storage}); }
  [[nodiscard]] const StepRecord& record() const { return record_; }
  [[nodiscard]] StepRecord& record() { return record_; }

 private:
  Storage add(const StepRecord::Storage& storage) {
    record_.storages.push_back(storage);
    return static_cast<Storage>(record_.storages.size() - 1);
  }
  StepRecord record_;
};

struct RandomStepOptions {
  int calls = 12;
  int most_grains = 8;  // of a storage
  double writes = 0.15;
  double not_replayable = 0.05;
  double sources = 0.05;  // that arrive between two calls
  double lineages_end = 0.05;
  double workspaces = 0.2;
  double zero_bytes = 0.05;
};

// Calls that read what is alive, often what was made last and sometimes what was made long ago, as backward does.
class RandomStep {
 public:
  RandomStep(Random& random, const RandomStepOptions& options)
      : random_(random), options_(options) {}

  StepRecord draw() {
    for (int i = random_.between(1, 3); i > 0; --i) {
      alive_.push_back(step_.there(bytes(), random_.chance(0.7)));
    }
    if (alive_.size() > 1 && random_.chance(0.2)) release_one();
    for (int i = 0; i < options_.calls; ++i) {
      const StepBuilder::Call call = draw_call();
      const StepBuilder::Storage first = step_.call(call);
      for (std::uint32_t k = 0; k < call.makes.size(); ++k) alive_.push_back(first + k);
      if (!alive_.empty() && random_.chance(options_.lineages_end)) step_.end_lineage(any());
      while (!alive_.empty() && random_.chance(0.35)) release_one();
      if (!random_.chance(options_.sources)) continue;
      alive_.push_back(step_.source(bytes()));
      while (!alive_.empty() && random_.chance(0.4)) release_one();
    }
    return step_.record();
  }

 private:
  StepBuilder::Call draw_call() {
    StepBuilder::Call call{.cost = static_cast<double>(random_.between(0, 20)),
                           .is_replayable = !random_.chance(options_.not_replayable)};
    if (random_.chance(options_.workspaces)) call.workspace = bytes();
    if (!alive_.empty()) draw_uses(call);
    for (int k = random_.chance(0.7) ? 1 : random_.between(0, 3); k > 0; --k) {
      call.makes.push_back(bytes());
    }
    return call;
  }
  void draw_uses(StepBuilder::Call& call) {
    for (int k = random_.between(0, 3); k > 0; --k) call.reads.push_back(any());
    for (int k = 0; k < 2; ++k) {
      if (!random_.chance(options_.writes)) continue;
      const StepBuilder::Storage storage = any();
      const bool is_new = call.writes.empty() || call.writes.front().storage != storage;
      if (is_new) call.writes.push_back({storage, random_.chance(0.6)});
    }
  }
  Bytes bytes() {
    if (random_.chance(options_.zero_bytes)) return 0;
    return Bytes{512} * static_cast<Bytes>(random_.between(1, options_.most_grains)) -
           (random_.chance(0.2) ? 12U : 0U);
  }
  StepBuilder::Storage any() {
    const std::size_t back = random_.chance(0.5)
                                 ? random_.below(std::min<std::size_t>(alive_.size(), 3))
                                 : random_.below(alive_.size());
    return alive_[alive_.size() - 1 - back];
  }
  void release_one() {
    const std::size_t at = random_.below(alive_.size());
    step_.release(alive_[at]);
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  Random& random_;
  RandomStepOptions options_;
  StepBuilder step_;
  std::vector<StepBuilder::Storage> alive_;
};

inline StepRecord random_step(Random& random, const RandomStepOptions& options) {
  return RandomStep(random, options).draw();
}

// A network of layers: forward, then backward, which reads what forward made in the opposite order; parameters are
// changed at the end. Some layers change what they get where it is, some make two results, some read what an
// earlier one made; some make something larger of their result, and let go of that.
inline StepRecord random_training_step(Random& random, int layers, int most_grains = 8) {
  using Storage = StepBuilder::Storage;
  StepBuilder step;
  const auto bytes = [&] {
    return Bytes{512} * static_cast<Bytes>(random.between(1, most_grains));
  };
  const auto cost = [&] { return static_cast<double>(random.between(1, 20)); };
  struct Layer {
    Storage parameters = 0;
    Storage result = 0;
    std::vector<Storage> saved;  // what backward reads
  };
  std::vector<Layer> net;
  std::vector<Storage> parameters;
  for (int i = 0; i < layers; ++i) parameters.push_back(step.there(Bytes{512}));
  Storage before = step.source(bytes());
  const Storage batch = before;
  for (int i = 0; i < layers; ++i) {
    Layer layer{.parameters = parameters[static_cast<std::size_t>(i)], .saved = {before}};
    StepBuilder::Call call{.reads = {before, layer.parameters}, .makes = {bytes()}, .cost = cost()};
    if (!net.empty() && random.chance(0.2))
      call.reads.push_back(net[random.below(net.size())].result);
    if (random.chance(0.2)) call.makes.push_back(bytes());
    if (random.chance(0.3)) call.workspace = bytes();
    layer.result = step.call(call);
    if (call.makes.size() > 1) layer.saved.push_back(layer.result + 1);
    if (random.chance(0.2)) step.call({.writes = {{layer.result, true}}, .cost = cost()});
    if (call.makes.size() == 1 && random.chance(0.2)) {
      const Bytes larger = call.makes[0] + bytes();
      const Storage wide = step.call({.reads = {layer.result}, .makes = {larger}, .cost = cost()});
      step.release(layer.result);
      layer.result = wide;
    }
    before = layer.result;
    net.push_back(layer);
  }
  Storage gradient = step.call({.reads = {before}, .makes = {bytes()}, .cost = cost()});
  for (std::size_t i = net.size(); i-- > 0;) {
    StepBuilder::Call call{.reads = net[i].saved, .makes = {bytes(), Bytes{512}}, .cost = cost()};
    call.reads.push_back(gradient);
    call.reads.push_back(net[i].parameters);
    const Storage made = step.call(call);
    step.release(gradient);
    step.release(net[i].result);
    if (net[i].saved.size() > 1) step.release(net[i].saved[1]);
    gradient = made;
    step.call({.reads = {made + 1}, .writes = {{net[i].parameters, true}}, .cost = cost()});
    step.release(made + 1);
  }
  step.release(gradient);
  step.release(batch);
  return step.record();
}

}  // namespace coop::testing
