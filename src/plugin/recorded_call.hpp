#pragma once

// One run of an operator, as it is kept for a replay: its arguments without their contents, what it
// made, and what it ran in.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include "plugin/ambience.hpp"
#include "plugin/random_state.hpp"

namespace coop::plugin {

// A tensor without its contents: how it looks at a storage.
class TensorRecipe {
 public:
  static TensorRecipe of(const at::Tensor& tensor);
  [[nodiscard]] at::Tensor on(c10::Storage storage) const;
  // Whether the tensor looks at its storage in this way.
  [[nodiscard]] bool fits(const at::Tensor& tensor) const;
  // Of shape and type.
  [[nodiscard]] std::uint64_t hash() const;
  [[nodiscard]] c10::Device device() const { return device_; }

 private:
  c10::SmallVector<std::int64_t, 8> sizes_and_strides_;
  std::int64_t offset_ = 0;
  caffe2::TypeMeta dtype_;
  c10::DispatchKeySet keys_;
  c10::Device device_ = c10::Device(c10::kCPU);
  bool is_conj_ = false;
  bool is_neg_ = false;
  bool requires_grad_ = false;  // some kernels are chosen by it
};

// The arguments or the results of an operator.
inline std::span<const c10::IValue> last_of(const torch::jit::Stack& stack, std::size_t count) {
  return std::span(stack).last(count);
}

// The tensors in a list of values, in order: fn(const at::Tensor&, argument, element). The element is -1
// for a tensor that is an argument itself. Undefined ones are passed over.
template <typename Function>
void for_each_tensor(std::span<const c10::IValue> values, Function&& fn) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const c10::IValue& value = values[i];
    if (value.isTensor()) {
      if (value.toTensor().defined()) fn(value.toTensor(), i, -1);
    } else if (value.isTensorList() || value.isOptionalTensorList()) {
      const auto elements = value.toListRef();
      for (std::size_t j = 0; j < elements.size(); ++j) {
        const bool is_there = elements[j].isTensor() && elements[j].toTensor().defined();
        if (is_there) fn(elements[j].toTensor(), i, static_cast<std::int64_t>(j));
      }
    }
  }
}

// A storage that looks at memory and does not own it.
c10::Storage storage_over(c10::Device device, void* data, std::size_t bytes);
// Whether we can look into the value: numbers, tensors, and lists of them, but no objects.
bool is_transparent(const c10::IValue& value);
// The value without its tensors.
c10::IValue without_tensors(const c10::IValue& value);
void put_tensor(c10::IValue& value, std::int64_t element, at::Tensor tensor);

// One for nearly every operator: with what most of them need, it is a single piece of memory.
struct RecordedCall {
  explicit RecordedCall(c10::OperatorHandle handle) : op(std::move(handle)) {}

  c10::OperatorHandle op;
  c10::DispatchKeySet keys;  // below us
  c10::SmallVector<c10::IValue, 4> arguments;
  std::shared_ptr<const Ambience> ambience;
  std::unique_ptr<RandomState> random;  // if it drew numbers
  double cost = 0;

  // What the tensors among the arguments looked at: an input of the engine's Call, a storage that the
  // operator overwrites without reading it, or one of no bytes, which the engine does not know.
  enum class Origin : std::uint8_t { kInput, kOverwritten, kNothing };
  struct Argument {
    std::size_t argument = 0;
    std::int64_t element = -1;
    Origin origin = Origin::kNothing;
    std::size_t number = 0;  // of the input; or in `overwritten`
    TensorRecipe recipe;
  };
  c10::SmallVector<Argument, 2> tensors;
  c10::SmallVector<std::size_t, 4> input_bytes;
  struct Overwritten {
    std::size_t output = 0;
    std::size_t bytes = 0;
  };
  c10::SmallVector<Overwritten, 1> overwritten;
  std::size_t written = 0;  // outputs of the engine's Call that are not new storages

  // What it made: which of its results, counted through lists, is the first on each new storage.
  struct Output {
    std::size_t position = 0;
    std::size_t bytes = 0;
    TensorRecipe recipe;
  };
  c10::SmallVector<Output, 1> outputs;

  // What is known of the contents that its run left in each output of the engine's Call.
  struct Contents {
    std::size_t bytes = 0;
    bool is_filled = false;  // all of them are its doing, none is what happened to be there
    bool was_evicted = false;
    std::uint64_t made = 0;  // a sum, from when it was made; 0: of what is too small to go
    std::atomic<std::uint64_t> sum =
        0;  // from when it first went, under the engine's lock; 0: not yet
  };
  std::unique_ptr<Contents[]> contents;  // NOLINT: their number is known late, and they do not move

  // Storages from outside the pool that it reads: nobody else may be left to keep them.
  c10::SmallVector<c10::intrusive_ptr<c10::StorageImpl>, 2> kept;

  // The arguments again, over these storages: `inputs` as the engine numbers them, `fresh` in the order of
  // `overwritten`.
  [[nodiscard]] torch::jit::Stack rebuild_arguments(std::span<const c10::Storage> inputs,
                                                    std::span<const c10::Storage> fresh) const;
  // Runs it once more, over these storages and in its own ambience; leaves its results on the stack.
  [[nodiscard]] torch::jit::Stack run_again(std::span<const c10::Storage> inputs,
                                            std::span<const c10::Storage> fresh) const;
  // The same, on the calling thread whatever it is.
  [[nodiscard]] torch::jit::Stack run_again_here(std::span<const c10::Storage> inputs,
                                                 std::span<const c10::Storage> fresh) const;
  // What a run made, like `outputs`: fn(const at::Tensor&, number). Throws InternalError where it is
  // of another shape than it was.
  template <typename Function>
  void for_each_output(const torch::jit::Stack& results, Function&& fn) const {
    std::size_t position = 0;
    std::size_t next = 0;
    for_each_tensor(results, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
      if (next == outputs.size() || outputs[next].position != position++) return;
      check_output(tensor, outputs[next]);
      fn(tensor, next++);
    });
    if (next != outputs.size()) throw_fewer_outputs();
  }
  [[nodiscard]] std::string name() const { return toString(op.operator_name()); }
  // The same for Calls that cost the same: of one operator, with the same shapes and whole numbers.
  [[nodiscard]] std::uint64_t kind() const;

 private:
  void check_output(const at::Tensor& tensor, const Output& wanted) const;
  [[noreturn]] void throw_fewer_outputs() const;
};

}  // namespace coop::plugin
