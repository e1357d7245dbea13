#include "plugin/gradients.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

namespace coop::plugin {

bool is_accumulating_gradient() {
  const auto node = torch::autograd::get_current_node();
  return node != nullptr && dynamic_cast<torch::autograd::AccumulateGrad*>(node.get()) != nullptr;
}

}  // namespace coop::plugin
