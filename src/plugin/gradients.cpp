#include "plugin/gradients.hpp"

#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

namespace coop::plugin {
namespace {

torch::autograd::AccumulateGrad* accumulating_node() {
  const auto node = torch::autograd::get_current_node();
  return dynamic_cast<torch::autograd::AccumulateGrad*>(node.get());
}

}  // namespace

bool is_accumulating_gradient() { return accumulating_node() != nullptr; }

c10::StorageImpl* parameter_of_gradient() {
  const auto* node = accumulating_node();
  if (node == nullptr || !node->variable.defined() || !node->variable.has_storage()) return nullptr;
  return node->variable.storage().unsafeGetStorageImpl();
}

void drop_failed_backward() noexcept {
  if (torch::autograd::get_current_node() != nullptr) return;  // one that goes on
  try {
    const c10::InferenceMode no_inference(false);
    const at::AutoGradMode with_gradients(true);
    const at::Tensor nothing = at::empty({0}).set_requires_grad(true);
    nothing.view({0}).backward(at::empty({0}), std::nullopt, false,
                               std::vector<at::Tensor>{nothing});
  } catch (...) {  // NOLINT(bugprone-empty-catch): see the note
  }
}

}  // namespace coop::plugin
