#pragma once

// A program that trains a network, as PyTorch would run it, written down as a trace. Generators are
// written against this like models against PyTorch:
//
//     Tensor x = training.batch(bytes);
//     x = training.apply(matmul, x, weight);      // forward; what backward needs is kept for it
//     training.learn(std::move(x));               // backward, which frees what was kept, and update
//
// A Tensor is a reference: the storage is released when the last goes, be it a variable of the model or
// what is kept for backward. Costs are whole nanoseconds in integer arithmetic, so that a seed gives
// the same trace with every compiler.

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/generators/random.hpp"
#include "sim/trace/trace_builder.hpp"

namespace coop::sim {

class Training;

// One more name for a storage.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), storage_(other.storage_) {}
  // Not by value: when a parameter goes is up to the compiler, and with it the order of releases.
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(storage_, other.storage_);
    other.reset();
    return *this;
  }
  ~Tensor() { reset(); }

  void reset() noexcept;
  [[nodiscard]] StorageNumber storage() const { return storage_; }
  [[nodiscard]] Bytes bytes() const;

 private:
  friend class Training;
  Tensor(Training& owner, StorageNumber storage) : owner_(&owner), storage_(storage) {}

  Training* owner_ = nullptr;
  StorageNumber storage_{};
};

// An operator of a model, and what its backward does.
struct Operator {
  std::string_view name;
  std::uint64_t flops = 0;
  Bytes output_bytes = 0;
  Bytes mask_bytes = 0;          // of a second output that only backward reads: a mask, statistics
  Bytes workspace_bytes = 0;     // forward and backward
  bool keeps_inputs = false;     // for backward
  bool keeps_output = false;     // for backward
  bool passes_gradient = false;  // the inputs' gradients are the output's: no call
  bool is_in_place = false;      // the first input becomes the output
  bool is_random = false;
};

enum class Optimizer : std::uint8_t { kSgd, kAdam };

class Training {
 public:
  Training(std::uint64_t seed, Optimizer optimizer) : random_(seed), optimizer_(optimizer) {}
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  ~Training() = default;

  [[nodiscard]] Random& random() { return random_; }

  // --- what comes from outside ---
  Tensor parameter(Bytes bytes, std::string_view name);  // with the optimizer's state for it
  Tensor batch(Bytes bytes, std::string_view name = "batch");

  // --- forward ---
  Tensor apply(const Operator& op, const std::vector<Tensor>& inputs);
  // Operators from here on belong to this module.
  void enter(std::string_view module);
  // A buffer (a counter, a mean) is changed where it is, from what is read.
  void update_buffer(std::string_view op, const Tensor& buffer, const std::vector<Tensor>& reads);
  // In between nothing is kept for backward.
  void begin_evaluation() { is_evaluating_ = true; }
  void end_evaluation() { is_evaluating_ = false; }

  // --- the rest of a step ---
  void begin_step();
  void backward(const Tensor& loss);
  void update_parameters();
  // Both, with no use for the loss in between.
  void learn(Tensor&& loss);
  // Keeps a running mean of each parameter, in place.
  void average_parameters();

  // Everything that is still referenced stays alive at the trace's end: destroy Tensors first.
  Trace finish();

 private:
  friend class Tensor;

  struct Parameter {
    Tensor value;
    std::vector<Tensor> state;
    Tensor average;  // none until it is asked for
  };
  // One call of the backward pass, with what was kept for it.
  struct Node {
    Operator op;
    NameNumber module = kNoName;
    Tensor output;
    std::vector<Tensor> inputs;  // those that want a gradient
    std::vector<Tensor> kept;
    std::uint64_t forward_ns = 0;
  };

  void reference(StorageNumber storage);
  void unreference(StorageNumber storage);
  Tensor own(StorageNumber storage) { return {*this, storage}; }
  [[nodiscard]] std::uint64_t cost_ns(std::uint64_t flops, Bytes moved);
  void run_backward(const Node& node);
  void accumulate(const Tensor& input, const Tensor& gradient);
  [[nodiscard]] bool wants_gradient(const Tensor& tensor) const;
  void want_gradient(const Tensor& tensor);

  TraceBuilder builder_;
  std::vector<std::uint32_t> references_;  // by storage
  Random random_;
  Optimizer optimizer_;
  NameNumber module_ = kNoName;
  bool is_evaluating_ = false;
  std::vector<bool> wants_gradient_;  // by storage
  std::vector<Parameter> parameters_;
  std::vector<Node> tape_;
  std::map<StorageNumber, Tensor> gradients_;  // ordered: they are released in this order
};

}  // namespace coop::sim
