#include "plugin/recorded_call.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/core/List.h>

#include "core/base/errors.hpp"
#include "core/base/hash.hpp"
#include "plugin/session.hpp"
#include "plugin/without_python.hpp"

namespace coop::plugin {

// --- tensors ---

TensorRecipe TensorRecipe::of(const at::Tensor& tensor) {
  TensorRecipe recipe;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  recipe.sizes_and_strides_.append(sizes.begin(), sizes.end());
  recipe.sizes_and_strides_.append(strides.begin(), strides.end());
  recipe.offset_ = tensor.storage_offset();
  recipe.dtype_ = tensor.dtype();
  recipe.keys_ = tensor.key_set();
  recipe.device_ = tensor.device();
  recipe.is_conj_ = tensor.is_conj();
  recipe.is_neg_ = tensor.is_neg();
  recipe.requires_grad_ = tensor.requires_grad();
  return recipe;
}

at::Tensor TensorRecipe::on(c10::Storage storage) const {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys_, dtype_);
  const at::IntArrayRef both = sizes_and_strides_;
  const std::size_t dimensions = both.size() / 2;
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(both.slice(0, dimensions), both.slice(dimensions), offset_);
  if (is_conj_) impl._set_conj(true);
  if (is_neg_) impl._set_neg(true);
  if (requires_grad_) impl.set_requires_grad(true);
  return tensor;
}

bool TensorRecipe::fits(const at::Tensor& tensor) const {
  const at::IntArrayRef both = sizes_and_strides_;
  const std::size_t dimensions = both.size() / 2;
  return tensor.sizes() == both.slice(0, dimensions) &&
         tensor.strides() == both.slice(dimensions) && tensor.storage_offset() == offset_ &&
         tensor.dtype() == dtype_ && tensor.is_conj() == is_conj_ && tensor.is_neg() == is_neg_;
}

c10::Storage storage_over(c10::Device device, void* data, std::size_t bytes) {
  return {c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, c10::DataPtr(data, device),
      c10::GetAllocator(device.type()), /*resizable=*/false)};
}

std::uint64_t TensorRecipe::hash() const {
  std::uint64_t hash = static_cast<std::uint64_t>(dtype_.itemsize());
  for (const std::int64_t it : sizes_and_strides_) {
    hash = mixed(hash, static_cast<std::uint64_t>(it));
  }
  return hash;
}

// --- values ---

namespace {

bool is_plain(const c10::IValue& value) {
  return value.isNone() || value.isTensor() || value.isInt() || value.isDouble() ||
         value.isBool() || value.isComplexDouble() || value.isString() || value.isDevice() ||
         value.isGenerator();
}

}  // namespace

bool is_transparent(const c10::IValue& value) {
  if (!value.isList()) return is_plain(value);
  const auto elements = value.toListRef();
  return std::all_of(elements.begin(), elements.end(), is_plain);
}

c10::IValue without_tensors(const c10::IValue& value) {
  // One that is not there is not None to an operator whose schema does not say that it may be.
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue() : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    list.resize(value.toListRef().size());
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (std::size_t i = 0; i < value.toListRef().size(); ++i) list.push_back(std::nullopt);
    return list;
  }
  // Lists are shared, not copied, by their values; a script may change its own later.
  if (value.isList()) return value.toList().copy();
  return value;
}

void put_tensor(c10::IValue& value, std::int64_t element, at::Tensor tensor) {
  const auto index = static_cast<std::size_t>(element);
  if (element < 0) {
    value = std::move(tensor);
  } else if (value.isTensorList()) {
    value.toTensorList().set(index, std::move(tensor));
  } else {
    value.toOptionalTensorList().set(index, std::move(tensor));
  }
}

namespace {

c10::Storage empty_storage(c10::Device device) {
  return {c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), 0, c10::DataPtr(nullptr, device),
      c10::GetAllocator(device.type()), /*resizable=*/true)};
}

}  // namespace

torch::jit::Stack RecordedCall::rebuild_arguments(std::span<const c10::Storage> inputs,
                                                  std::span<const c10::Storage> fresh) const {
  torch::jit::Stack stack;
  stack.reserve(arguments.size());
  for (const c10::IValue& value : arguments) {
    // The operator may keep or change the list that it gets.
    stack.push_back(value.isList() ? c10::IValue(value.toList().copy()) : value);
  }
  for (const Argument& it : tensors) {
    c10::Storage storage;
    if (it.origin == Origin::kInput) {
      storage = inputs[it.number];
    } else if (it.origin == Origin::kOverwritten) {
      storage = fresh[it.number];
    } else {
      storage = empty_storage(it.recipe.device());
    }
    put_tensor(stack[it.argument], it.element, it.recipe.on(std::move(storage)));
  }
  return stack;
}

namespace {

class Replaying {
 public:
  Replaying() { this_thread.is_replaying = true; }
  Replaying(const Replaying&) = delete;
  Replaying& operator=(const Replaying&) = delete;
  ~Replaying() { this_thread.is_replaying = false; }
};

// Runs it on a thread of its own, as this one would.
template <typename Function>
auto elsewhere(Function&& fn) {
  std::optional<decltype(fn())> result;
  std::exception_ptr error;
  ThreadState& here = this_thread;
  const auto run = [&] {
    choose_thread_count();
    this_thread = here;
    try {
      result = fn();
    } catch (...) {
      error = std::current_exception();
    }
    here = this_thread;
  };
  {
    const WithoutPython released;  // an operator that is registered may be written in it
    std::thread(run).join();
  }
  if (error) std::rethrow_exception(error);
  return *std::move(result);
}

}  // namespace

// A thread that has not yet had its number of threads chosen must not have it chosen by what is run again. (Never for
// a GPU: another thread would enqueue it elsewhere.)
torch::jit::Stack RecordedCall::run_again(std::span<const c10::Storage> inputs,
                                          std::span<const c10::Storage> fresh) const {
  if (ambience->fits_threads() || is_thread_count_chosen()) {
    return run_again_here(inputs, fresh);
  }
  return elsewhere([&] { return run_again_here(inputs, fresh); });
}

torch::jit::Stack RecordedCall::run_again_here(std::span<const c10::Storage> inputs,
                                               std::span<const c10::Storage> fresh) const {
  // Tensors are another kind inside inference_mode, which some kernels do not change outside.
  const AmbienceGuard guard(*ambience);
  torch::jit::Stack stack = rebuild_arguments(inputs, fresh);
  const ExpectedCost expected(cost);
  std::optional<RandomStateGuard> generator;
  if (random) generator.emplace(*random);
  const Replaying replaying;
  op.redispatchBoxed(keys, &stack);
  return stack;
}

std::uint64_t RecordedCall::kind() const {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&op.schema());
  for (const Argument& it : tensors) hash = mixed(hash, it.recipe.hash());
  for (const c10::IValue& value : arguments) {
    if (value.isInt()) hash = mixed(hash, static_cast<std::uint64_t>(value.toInt()));
    if (!value.isIntList()) continue;
    for (const c10::IValue& each : value.toListRef()) {
      hash = mixed(hash, static_cast<std::uint64_t>(each.toInt()));
    }
  }
  return hash;
}

void RecordedCall::check_output(const at::Tensor& tensor, const Output& wanted) const {
  const bool has_storage = tensor.has_storage();
  if (has_storage && wanted.recipe.fits(tensor) && tensor.storage().nbytes() == wanted.bytes)
    return;
  throw InternalError(name() + " made a tensor of another shape when it was run again");
}

void RecordedCall::throw_fewer_outputs() const {
  throw InternalError(name() + " made fewer tensors when it was run again");
}

}  // namespace coop::plugin
