// Somebody else's extension, which has never heard of coop: operators that read and write through raw
// pointers, some of them not as their schema says. The tests of the plugin load it (torch.ops.foreign).
#include <cstring>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace {

double sum_of(const float* data, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += data[i];
  return sum;
}

double total(const at::Tensor& x) { return sum_of(x.const_data_ptr<float>(), x.numel()); }

double sum_all(at::TensorList all) {
  double result = 0;
  for (const at::Tensor& it : all) result += total(it);
  return result;
}

at::Tensor twice(const at::Tensor& x) {
  at::Tensor result = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) to[i] = 2 * from[i];
  return result;
}

// A backward of PyTorch's own is called like that: with a tensor that is not there, where the schema has no `?`.
at::Tensor twice_unless(const at::Tensor& x, const at::Tensor& other) {
  return other.defined() ? other : twice(x);
}
at::Tensor twice_without_other(const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("foreign::twice_unless", "")
      .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>()
      .call(x, at::Tensor());
}

// As cuDNN is called: where there is no memory for the best way, another one is taken, and kept to from then on.
std::int64_t other_ways = 0;
at::Tensor twice_in_best_way(const at::Tensor& x, std::int64_t workspace) {
  try {
    const at::Tensor room = at::empty({workspace}, x.options());
    return twice(x);
  } catch (const c10::OutOfMemoryError&) {
    ++other_ways;
    return twice(x).add_(1);
  }
}
std::int64_t other_ways_taken() { return other_ways; }

// As old code does it: no const, no type, and without a word in the schema.
void fill_secretly(const at::Tensor& x, double value) {
  auto* data = static_cast<float*>(x.data_ptr());
  for (std::int64_t i = 0; i < x.numel(); ++i) data[i] = static_cast<float>(value);
}

// Of the storage's, not of the tensor's.
double first_of_storage(const at::Tensor& x) {
  float result = 0;
  std::memcpy(&result, x.storage().data(), sizeof(result));
  return result;
}
double first_of_storage_to_write(const at::Tensor& x) {
  float result = 0;
  std::memcpy(&result, x.storage().mutable_data(), sizeof(result));
  return result;
}

struct Kept {
  const float* data = nullptr;
  std::int64_t count = 0;
};
Kept kept;

void keep(const at::Tensor& x) { kept = {x.const_data_ptr<float>(), x.numel()}; }
double sum_of_kept() { return sum_of(kept.data, kept.count); }

// A tensor held where no operator shows it.
std::vector<at::Tensor>& held() {
  static std::vector<at::Tensor> tensors;
  return tensors;
}
void hold(const at::Tensor& x) { held().push_back(x); }
double sum_of_held() {
  const double result = total(held().back());
  held().pop_back();
  return result;
}

TORCH_LIBRARY(foreign, library) {
  library.def("sum(Tensor x) -> float");
  library.def("sum_all(Tensor[] all) -> float");
  library.def("twice(Tensor x) -> Tensor");
  library.def("twice_unless(Tensor x, Tensor other) -> Tensor");
  library.def("twice_without_other(Tensor x) -> Tensor", &twice_without_other);
  library.def("twice_in_best_way(Tensor x, int workspace) -> Tensor");
  library.def("other_ways_taken() -> int", &other_ways_taken);
  library.def("fill_secretly(Tensor x, float value) -> ()");
  library.def("keep(Tensor x) -> ()");
  library.def("hold(Tensor x) -> ()");
  // Above autograd, and so above everything that coop sees: read before anybody is asked.
  library.def("sum_above(Tensor x) -> float", &total);
  library.def("fill_above(Tensor x, float value) -> ()", &fill_secretly);
  library.def("first_of_storage(Tensor x) -> float", &first_of_storage);
  library.def("first_of_storage_to_write(Tensor x) -> float", &first_of_storage_to_write);
  library.def("sum_of_kept() -> float", &sum_of_kept);
  library.def("sum_of_held() -> float", &sum_of_held);
}

TORCH_LIBRARY_IMPL(foreign, CPU, library) {
  library.impl("sum", &total);
  library.impl("sum_all", &sum_all);
  library.impl("twice", &twice);
  library.impl("twice_unless", &twice_unless);
  library.impl("twice_in_best_way", &twice_in_best_way);
  library.impl("fill_secretly", &fill_secretly);
  library.impl("keep", &keep);
  library.impl("hold", &hold);
}

}  // namespace
