#include "plugin/running_module.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

namespace coop::plugin {
namespace {

struct FromNode {
  std::uint64_t number = 0;
  std::string module;
};

struct Modules {
  std::mutex mutex;
  std::uint64_t generation = 0;
  std::unordered_map<std::uint64_t, std::vector<FromNode>> by_thread;  // that ran the forward
};
Modules& modules() {
  static auto& it = *new Modules;  // threads may outlive main()
  return it;
}

struct Current {
  std::uint64_t generation = 0;
  std::string module;
};
thread_local Current current;

// AccumulateGrad has the largest number that there is, so that it comes first.
constexpr std::uint64_t kNoNumber = std::numeric_limits<std::uint64_t>::max();

std::string module_of_node(const torch::autograd::Node& node, const Modules& all) {
  const auto found = all.by_thread.find(node.thread_id());
  if (found == all.by_thread.end() || node.sequence_nr() == kNoNumber) return {};
  const std::vector<FromNode>& list = found->second;
  const auto is_before = [](std::uint64_t number, const FromNode& it) {
    return number < it.number;
  };
  const auto after = std::upper_bound(list.begin(), list.end(), node.sequence_nr(), is_before);
  return after == list.begin() ? std::string() : std::prev(after)->module;
}

}  // namespace

void enter_module(const std::string& name) {
  Modules& all = modules();
  const std::scoped_lock lock(all.mutex);
  current = {.generation = all.generation, .module = name};
  std::vector<FromNode>& list = all.by_thread[at::RecordFunction::currentThreadId()];
  const std::uint64_t next = at::sequence_number::peek();
  // One that made no node has no backward.
  if (!list.empty() && list.back().number == next) list.pop_back();
  list.push_back({.number = next, .module = name});
}

std::string module_of_this_thread() {
  Modules& all = modules();
  const std::scoped_lock lock(all.mutex);
  // What is checkpointed runs its forward in backward, and knows better than the node.
  if (current.generation == all.generation && !current.module.empty()) return current.module;
  const auto node = torch::autograd::get_current_node();
  return node ? module_of_node(*node, all) : std::string();
}

void forget_modules() noexcept {
  Modules& all = modules();
  const std::scoped_lock lock(all.mutex);
  all.by_thread.clear();
  ++all.generation;
}

}  // namespace coop::plugin
