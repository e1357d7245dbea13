#pragma once

#include <memory>
#include <vector>

#include "core/engine/engine.hpp"
#include "support/hash_world.hpp"

namespace coop::testing {

// A program written down in a test: operators have a name each, tensors the size of a grain unless
// told otherwise.
class Program {
 public:
  explicit Program(Grains grains, const EngineOptions& options = {}, Bytes small_limit = 0)
      : policy_(make_policy("coop")),
        pool_({.bytes = to_bytes(grains), .small_limit = small_limit}, backing_),
        world_(pool_.bytes()),
        engine_(pool_, *policy_, world_, options) {
    world_.set_engine(engine_, pool_);
  }

  struct Tensor {
    StorageId storage;
    Token token = 0;
    Bytes bytes = kGrainBytes;
  };

  Tensor source(Content content, Bytes bytes = kGrainBytes) {
    const BlockId block = engine_.allocate(bytes);
    world_.write(block, content);
    const Token token = world_.new_storage();
    return {engine_.add_source(token, bytes, block), token, bytes};
  }

  // One new tensor from these.
  Tensor make(Content name, const std::vector<Tensor>& reads, Bytes bytes = kGrainBytes) {
    return run(name, reads, {}, 1, {}, bytes).at(0);
  }
  void change(Content name, const Tensor& target, const std::vector<Tensor>& reads = {}) {
    run(name, reads, {{target.storage, true}}, 0, {target});
  }
  void overwrite(Content name, const Tensor& target, const std::vector<Tensor>& reads) {
    run(name, reads, {{target.storage, false}}, 0, {target});
  }
  std::vector<Tensor> run(Content name, const std::vector<Tensor>& reads,
                          const std::vector<Write>& writes, std::size_t made,
                          const std::vector<Tensor>& written = {}, Bytes bytes = kGrainBytes) {
    std::vector<StorageId> storages;
    for (const Tensor& tensor : reads) storages.push_back(tensor.storage);
    RunningCall call = engine_.begin_call(storages, writes);
    HashOp op{.salt = name, .cost = 100};
    for (std::size_t i = 0; i < writes.size(); ++i) {
      op.overwrites.push_back(writes[i].reads_old ? 0 : written[i].bytes);
    }
    std::vector<NewOutput> outputs;
    for (std::size_t i = 0; i < made; ++i) {
      outputs.push_back({.block = engine_.allocate(bytes, op.cost),
                         .storage = world_.new_storage(),
                         .bytes = bytes});
      op.makes.push_back(bytes);
    }
    std::vector<Content> inputs;
    for (const Tensor& tensor : reads) inputs.push_back(now(tensor));
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (writes[i].reads_old) inputs.push_back(now(written[i]));
    }
    for (std::size_t i = 0; i < writes.size(); ++i) {
      world_.write(*world_.block_of(written[i].token), HashWorld::result_of(op, inputs, i));
    }
    for (std::size_t i = 0; i < made; ++i) {
      world_.write(outputs[i].block, HashWorld::result_of(op, inputs, writes.size() + i));
    }
    const Token token = world_.remember(std::move(op));
    const auto made_storages = engine_.end_call(
        call, {.token = token, .cost = 100, .is_replayable = true, .outputs = outputs});
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < made; ++i)
      tensors.push_back({made_storages[i], outputs[i].storage, bytes});
    return tensors;
  }

  // Ends an operator that was begun by hand, and makes nothing new.
  void end(RunningCall& call, HashOp op) {
    const double cost = op.cost;
    const Token token = world_.remember(std::move(op));
    engine_.end_call(call, {.token = token, .cost = cost, .is_replayable = true});
  }

  void release(const Tensor& tensor) {
    engine_.release(tensor.storage);
    world_.drop_storage(tensor.token);
  }

  // What it holds, brought back if need be.
  Content read(const Tensor& tensor) {
    engine_.make_resident(tensor.storage);
    return now(tensor);
  }

  // What an operator makes of contents.
  static Content result(Content name, const std::vector<Content>& inputs, std::size_t output = 0) {
    return HashWorld::result_of({.salt = name}, inputs, output);
  }

  Engine& engine() { return engine_; }
  HashWorld& world() { return world_; }
  Pool& pool() { return pool_; }
  [[nodiscard]] const Engine& engine() const { return engine_; }
  [[nodiscard]] const Pool& pool() const { return pool_; }

 private:
  Content now(const Tensor& tensor) { return world_.read(*world_.block_of(tensor.token)); }

  FakeBacking backing_;
  std::unique_ptr<Policy> policy_;
  Pool pool_;
  HashWorld world_;
  Engine engine_;
};

}  // namespace coop::testing
