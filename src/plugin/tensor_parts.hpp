#pragma once

// What a tensor consists of, where that is more than memory with a shape.

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>

#include "plugin/device.hpp"

namespace coop::plugin {

// It has one.
inline c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// Every byte of its storage is one of its elements. (Sizes that a compiler has only symbols for are not asked for.)
inline bool covers_storage(const at::Tensor& tensor) {
  if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return false;
  if (storage_of(tensor)->sym_nbytes().is_heap_allocated()) return false;
  return tensor.is_non_overlapping_and_dense() && tensor.storage_offset() == 0 &&
         tensor.nbytes() == storage_of(tensor)->nbytes();
}

// Not only memory with a shape: something else must be rebuilt beside it, or handles its operators.
inline bool is_strange(const at::Tensor& tensor) {
  const auto keys = tensor.key_set();
  const c10::Device device = tensor.device();
  const bool is_known_device = device.is_cpu() || device.is_cuda() || has_kind(device.type());
  return tensor.layout() != c10::kStrided || !is_known_device || !tensor.has_storage() ||
         tensor.is_quantized() || tensor.is_nested() || tensor._is_zerotensor() ||
         keys.has(c10::DispatchKey::Python) || keys.has(c10::DispatchKey::FuncTorchBatched) ||
         keys.has(c10::DispatchKey::FuncTorchGradWrapper) ||
         keys.has(c10::DispatchKey::Functionalize);
}

// Every tensor with a storage that it is made of: of a sparse one its indices and values, of any other the
// tensor itself. fn(const at::Tensor&).
template <typename Function>
void for_each_part(const at::Tensor& tensor, Function&& fn) {
  if (tensor.has_storage()) {
    fn(tensor);
    return;
  }
  const auto each = [&](const at::Tensor& part) {
    if (part.defined() && part.has_storage()) fn(part);
  };
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (const auto* list = dynamic_cast<const at::SparseTensorImpl*>(impl)) {
    each(list->indices());
    each(list->values());
  } else if (const auto* rows = dynamic_cast<const at::SparseCsrTensorImpl*>(impl)) {
    each(rows->compressed_indices());
    each(rows->plain_indices());
    each(rows->values());
  }
}

// One that for_each_part sees all of.
inline bool is_sparse(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return dynamic_cast<const at::SparseTensorImpl*>(impl) != nullptr ||
         dynamic_cast<const at::SparseCsrTensorImpl*>(impl) != nullptr;
}

}  // namespace coop::plugin
