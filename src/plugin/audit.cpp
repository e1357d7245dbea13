#include "plugin/audit.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>

#include "plugin/cpu_allocator.hpp"

namespace coop::plugin {
namespace {

constexpr int kPoison = 0xA5;

const void* memory(const c10::StorageImpl& impl) { return impl.data(); }

bool are_equal(const void* a, const void* b, std::size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

bool overlap(const c10::StorageImpl& a, const c10::StorageImpl& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory(a));
  const auto second = reinterpret_cast<std::uintptr_t>(memory(b));
  return first < second + b.nbytes() && second < first + a.nbytes();
}

// The elements of two tensors of one shape: beside them a storage may hold what happened to be there.
bool have_equal_elements(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor first = a.contiguous();
  const at::Tensor second = b.contiguous();
  return are_equal(first.const_data_ptr(), second.const_data_ptr(), first.nbytes());
}

}  // namespace

Audit::Audit(std::vector<Use> uses)
    : uses_(std::move(uses)), random_(RandomState::of(at::detail::getDefaultCPUGenerator())) {
  for (const Use& use : uses_) {
    const std::size_t bytes = use.impl->nbytes();
    copies_.push_back({.data = plain_allocator().allocate(bytes), .bytes = bytes});
    std::memcpy(copies_.back().data.get(), memory(*use.impl), bytes);
  }
}

void Audit::look(std::span<c10::StorageImpl* const> results, bool is_random) {
  if (!is_random && random_.has_moved()) {
    findings_.emplace_back("draws random numbers, which its tags do not say");
  }
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const bool is_same = uses_[i].impl->nbytes() == copies_[i].bytes &&
                         are_equal(memory(*uses_[i].impl), copies_[i].data.get(), copies_[i].bytes);
    if (is_same || uses_[i].is_written) continue;
    findings_.emplace_back("writes an argument that its schema does not name as written");
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto shares = [&](const c10::StorageImpl* other) { return overlap(*results[i], *other); };
    const bool has_argument =
        std::any_of(uses_.begin(), uses_.end(), [&](const Use& use) { return shares(use.impl); });
    const auto others = results.first(i);
    if (has_argument || std::any_of(others.begin(), others.end(), shares)) {
      findings_.emplace_back("returns memory that another storage has as well");
    }
  }
}

void Audit::run_again(const RecordedCall& call, std::span<c10::StorageImpl* const> made) {
  std::vector<c10::Storage> inputs(call.input_bytes.size());
  std::vector<c10::Storage> fresh(call.overwritten.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].is_left_out) continue;
    auto& among = uses_[i].is_input ? inputs : fresh;
    // What was there is not to matter.
    if (!uses_[i].is_input) std::memset(copies_[i].data.get(), kPoison, copies_[i].bytes);
    among[uses_[i].number] =
        storage_over(c10::Device(c10::kCPU), copies_[i].data.get(), copies_[i].bytes);
  }
  try {
    const RandomState before = RandomState::of(random_.generator());
    const RandomStateGuard as_it_was(before);
    const torch::jit::Stack results = call.run_again(inputs, fresh);
    if (before.has_moved()) {
      findings_.emplace_back("draws random numbers only when it is run again");
    }
    compare_made(call, results, made);
  } catch (const std::exception& error) {
    findings_.push_back(std::string("cannot be run again: ") + error.what());
    return;
  }
  compare_written();
}

// A replay leaves in each storage what the run itself has left there.
void Audit::compare_written() {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const c10::StorageImpl& impl = *uses_[i].impl;
    const bool is_same = impl.nbytes() == copies_[i].bytes &&
                         are_equal(memory(impl), copies_[i].data.get(), copies_[i].bytes);
    if (is_same || uses_[i].is_left_out) continue;
    findings_.emplace_back(uses_[i].is_written
                               ? "writes something else into an argument when it is run again"
                               : "writes an argument when it is run again");
  }
}

void Audit::compare_made(const RecordedCall& call, const torch::jit::Stack& results,
                         std::span<c10::StorageImpl* const> made) {
  const AmbienceGuard guard(*call.ambience);
  call.for_each_output(results, [&](const at::Tensor& tensor, std::size_t number) {
    c10::StorageImpl& first = *made[number];
    const auto first_run = call.outputs[number].recipe.on(
        storage_over(first.device(), first._mutable_data_ptr_no_checks().get(), first.nbytes()));
    if (have_equal_elements(first_run, tensor)) return;
    findings_.push_back("makes something else as result " +
                        std::to_string(call.outputs[number].position) + " when it is run again");
  });
}

void Findings::add(const c10::OperatorHandle& op, const std::vector<std::string>& findings) {
  if (findings.empty()) return;
  const std::scoped_lock lock(mutex_);
  for (const std::string& it : findings) texts_.insert(toString(op.operator_name()) + " " + it);
}

std::string Findings::take() {
  const std::scoped_lock lock(mutex_);
  std::string all;
  for (const std::string& it : texts_) all += "\n  " + it;
  texts_.clear();
  return all;
}

}  // namespace coop::plugin
