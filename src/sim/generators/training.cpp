#include "sim/generators/training.hpp"

#include <algorithm>
#include <string>

namespace coop::sim {
namespace {

// A GPU of today, roughly: 200 TFLOP/s, 3 TB/s, and no kernel under two microseconds.
constexpr std::uint64_t kFlopsPerNs = 200'000;
constexpr Bytes kBytesPerNs = 3'000;
constexpr std::uint64_t kLeastNs = 2'000;

}  // namespace

// --- Tensor ---

Tensor::Tensor(const Tensor& other) : owner_(other.owner_), storage_(other.storage_) {
  if (owner_ != nullptr) owner_->reference(storage_);
}

// Releasing adds an event; that there is no memory for one would end the program.
void Tensor::reset() noexcept {
  if (owner_ != nullptr) std::exchange(owner_, nullptr)->unreference(storage_);
}

Bytes Tensor::bytes() const { return owner_->builder_.bytes_of(storage_); }

void Training::reference(StorageNumber storage) {
  if (references_.size() <= index_of(storage))
    references_.resize(index_of(storage) + std::size_t{1});
  ++references_[index_of(storage)];
}

void Training::unreference(StorageNumber storage) {
  if (--references_[index_of(storage)] == 0) builder_.release(storage);
}

// --- what comes from outside ---

Tensor Training::parameter(Bytes bytes, std::string_view name) {
  const auto add = [&](std::string_view what) {
    const NameNumber number = builder_.name(std::string(name) + std::string(what));
    const StorageNumber storage = builder_.add_source(bytes, number);
    reference(storage);
    return own(storage);
  };
  Parameter parameter{.value = add("")};
  if (optimizer_ == Optimizer::kSgd) {
    parameter.state.push_back(add(".momentum"));
  } else {
    parameter.state.push_back(add(".exp_avg"));
    parameter.state.push_back(add(".exp_avg_sq"));
  }
  want_gradient(parameter.value);
  parameters_.push_back(parameter);
  return parameter.value;
}

Tensor Training::batch(Bytes bytes, std::string_view name) {
  const StorageNumber storage = builder_.add_source(bytes, builder_.name(name));
  reference(storage);
  return own(storage);
}

bool Training::wants_gradient(const Tensor& tensor) const {
  const std::size_t index = index_of(tensor.storage());
  return index < wants_gradient_.size() && wants_gradient_[index];
}

void Training::want_gradient(const Tensor& tensor) {
  const std::size_t index = index_of(tensor.storage());
  if (wants_gradient_.size() <= index) wants_gradient_.resize(index + 1);
  wants_gradient_[index] = true;
}

// --- forward ---

void Training::enter(std::string_view module) { module_ = builder_.name(module); }

// Bound by arithmetic or by memory, whichever takes longer, and never twice quite the same.
std::uint64_t Training::cost_ns(std::uint64_t flops, Bytes moved) {
  const std::uint64_t ns = kLeastNs + std::max(flops / kFlopsPerNs, moved / kBytesPerNs);
  return ns * random_.between(900, 1100) / 1000;
}

Tensor Training::apply(const Operator& op, const std::vector<Tensor>& inputs) {
  std::vector<StorageNumber> reads;
  Bytes moved = op.output_bytes + op.mask_bytes;
  for (const Tensor& input : inputs) {
    reads.push_back(input.storage());
    moved += input.bytes();
  }
  std::vector<TraceWrite> writes;
  std::vector<NewStorage> made;
  if (op.is_in_place) {
    writes.push_back({.storage = reads.front()});
    reads.erase(reads.begin());
  } else {
    made.push_back({.bytes = op.output_bytes});
  }
  if (op.mask_bytes > 0) made.push_back({.bytes = op.mask_bytes});

  const std::uint64_t forward_ns = cost_ns(op.flops, moved);
  const StorageNumber first = builder_.add_call({.op = builder_.name(op.name),
                                                 .module = module_,
                                                 .cost_ns = static_cast<double>(forward_ns),
                                                 .workspace_bytes = op.workspace_bytes,
                                                 .is_random = op.is_random,
                                                 .reads = reads,
                                                 .writes = writes,
                                                 .outputs = made});
  std::vector<Tensor> outputs;
  for (std::uint32_t i = 0; i < made.size(); ++i) {
    const StorageNumber storage{index_of(first) + i};
    reference(storage);
    outputs.push_back(own(storage));
  }
  Tensor output = op.is_in_place ? inputs.front() : outputs.front();
  if (is_evaluating_) return output;

  Node node{.op = op, .module = module_, .output = output, .forward_ns = forward_ns};
  for (const Tensor& input : inputs) {
    if (wants_gradient(input)) node.inputs.push_back(input);
  }
  if (node.inputs.empty()) return output;
  if (op.keeps_inputs) node.kept = inputs;
  if (op.keeps_output) node.kept.push_back(output);
  if (op.mask_bytes > 0) node.kept.push_back(outputs.back());
  want_gradient(output);
  tape_.push_back(std::move(node));
  return output;
}

void Training::update_buffer(std::string_view op, const Tensor& buffer,
                             const std::vector<Tensor>& reads) {
  std::vector<StorageNumber> read;
  for (const Tensor& tensor : reads) read.push_back(tensor.storage());
  const TraceWrite write{.storage = buffer.storage()};
  builder_.add_call({.op = builder_.name(op),
                     .module = module_,
                     .cost_ns = static_cast<double>(cost_ns(0, 3 * buffer.bytes())),
                     .reads = read,
                     .writes = {&write, 1}});
}

// --- the rest of a step ---

void Training::begin_step() { builder_.begin_step(); }

void Training::backward(const Tensor& loss) {
  builder_.annotate(builder_.name("backward"));
  gradients_.emplace(loss.storage(), batch(loss.bytes(), "gradient of the loss"));
  while (!tape_.empty()) {
    const Node node = std::move(tape_.back());
    tape_.pop_back();
    run_backward(node);
  }
}

// One call makes the gradients of all inputs, and takes as long again for each.
void Training::run_backward(const Node& node) {
  const auto found = gradients_.find(node.output.storage());
  if (found == gradients_.end()) return;  // nothing that the loss depends on
  const Tensor gradient = std::move(found->second);
  gradients_.erase(found);

  if (node.op.passes_gradient) {
    for (const Tensor& input : node.inputs) accumulate(input, gradient);
    return;
  }
  std::vector<StorageNumber> reads{gradient.storage()};
  for (const Tensor& kept : node.kept) reads.push_back(kept.storage());
  std::vector<NewStorage> made;
  for (const Tensor& input : node.inputs) made.push_back({.bytes = input.bytes()});
  const std::string name = std::string(node.op.name) + "_backward";
  const StorageNumber first =
      builder_.add_call({.op = builder_.name(name),
                         .module = node.module,
                         .cost_ns = static_cast<double>(node.forward_ns * made.size()),
                         .workspace_bytes = node.op.workspace_bytes,
                         .reads = reads,
                         .outputs = made});
  for (std::uint32_t i = 0; i < made.size(); ++i) {
    const StorageNumber storage{index_of(first) + i};
    reference(storage);
    accumulate(node.inputs[i], own(storage));
  }
}

void Training::accumulate(const Tensor& input, const Tensor& gradient) {
  Tensor& sum = gradients_[input.storage()];
  if (sum.owner_ == nullptr) {
    sum = gradient;
    return;
  }
  // In place, unless what is there is somebody else's gradient as well.
  const bool is_shared = references_[index_of(sum.storage())] > 1;
  const std::vector<StorageNumber> reads{gradient.storage(), sum.storage()};
  const TraceWrite write{.storage = sum.storage()};
  const NewStorage made{.bytes = gradient.bytes()};
  NewCall call{.op = builder_.name(is_shared ? "add" : "add_"),
               .module = module_,
               .cost_ns = static_cast<double>(cost_ns(0, 3 * gradient.bytes()))};
  if (is_shared) {
    call.reads = reads;
    call.outputs = {&made, 1};
  } else {
    call.reads = {reads.data(), 1};
    call.writes = {&write, 1};
  }
  const StorageNumber storage = builder_.add_call(call);
  if (!is_shared) return;
  reference(storage);
  sum = own(storage);
}

void Training::update_parameters() {
  builder_.annotate(builder_.name("update"));
  const bool is_sgd = optimizer_ == Optimizer::kSgd;
  for (const Parameter& parameter : parameters_) {
    const auto found = gradients_.find(parameter.value.storage());
    if (found == gradients_.end()) continue;  // not part of this step's network
    const StorageNumber read = found->second.storage();
    std::vector<TraceWrite> writes{{.storage = parameter.value.storage()}};
    for (const Tensor& state : parameter.state) writes.push_back({.storage = state.storage()});
    const Bytes moved = (1 + 2 * writes.size()) * parameter.value.bytes();
    builder_.add_call({.op = builder_.name(is_sgd ? "sgd_" : "adam_"),
                       .cost_ns = static_cast<double>(cost_ns(0, moved)),
                       .reads = {&read, 1},
                       .writes = writes});
    gradients_.erase(found);
  }
  gradients_.clear();  // of batches
}

void Training::learn(Tensor&& loss) {
  const Tensor last = std::move(loss);
  backward(last);
  update_parameters();
}

void Training::average_parameters() {
  for (Parameter& parameter : parameters_) {
    if (parameter.average.owner_ == nullptr) {
      parameter.average = batch(parameter.value.bytes(), "average");
    }
    update_buffer("lerp_", parameter.average, {parameter.value});
  }
}

Trace Training::finish() {
  // Parameters stay alive: they are what the program was run for.
  for (Parameter& parameter : parameters_) {
    parameter.value.owner_ = nullptr;
    parameter.average.owner_ = nullptr;
    for (Tensor& state : parameter.state) state.owner_ = nullptr;
  }
  parameters_.clear();
  return builder_.finish();
}

}  // namespace coop::sim
