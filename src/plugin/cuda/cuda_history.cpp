#include "plugin/cuda/cuda_history.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include "plugin/device.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

using Action = MemoryHistory::Entry::Action;
using c10::cuda::CUDACachingAllocator::CreateContextFn;
using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using c10::cuda::CUDACachingAllocator::RecordContext;
using c10::cuda::CUDACachingAllocator::SnapshotInfo;

// Nobody has said how many: so many that a step of a large network is among them.
constexpr std::size_t kMostEntries = 100'000;

constexpr std::array<std::pair<std::string_view, Action>, 6> kActions = {{
    {"alloc", Action::ALLOC},
    {"free_requested", Action::FREE_REQUESTED},
    {"free_completed", Action::FREE_COMPLETED},
    {"segment_alloc", Action::SEGMENT_ALLOC},
    {"segment_free", Action::SEGMENT_FREE},
    {"oom", Action::OOM},
}};

std::vector<Action> actions_named(const std::vector<std::string>& names) {
  std::vector<Action> found;
  for (const auto& [name, action] : kActions) {
    if (std::find(names.begin(), names.end(), name) != names.end()) found.push_back(action);
  }
  return found;
}

std::shared_ptr<c10::GatheredContext> stack_of_python() {
  return torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true, /*cpp=*/false);
}

MemoryHistory& history_of(int device) {
  return device_at(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device))).history();
}

std::atomic<bool> is_recorded = false;

// On every GPU, as PyTorch does.
void begin(const MemoryHistory::Settings& settings) {
  for (int i = 0; i < c10::cuda::device_count(); ++i) history_of(i).begin(settings);
  is_recorded = true;
}

void end() {
  is_recorded = false;
  for (int i = 0; i < c10::cuda::device_count(); ++i) {
    history_of(i).end();
    history_of(i).forget();
  }
}

}  // namespace

void record_cuda_history(bool is_on, CreateContextFn take_stack, std::size_t most,
                         RecordContext when, bool clears, const std::vector<std::string>& skipped) {
  if (!is_on || clears) end();
  if (is_on) {
    begin({.take_stack = take_stack,
           .stacks = when,
           .most_entries = most,
           .skipped = actions_named(skipped)});
  }
  Session::for_each([](Session& session) {
    if (session.options().device.is_cuda()) session.history().follow();
  });
}

void follow_cuda_history(CUDAAllocator& torchs_own) {
  bool is_on = false;
  try {
    is_on = torchs_own.isHistoryEnabled();
  } catch (const c10::Error&) {
    return;  // there are allocators that know of no history
  }
  if (is_on == is_cuda_history_on()) return;
  if (!is_on) return end();
  begin({.take_stack = &stack_of_python,
         .stacks = RecordContext::ALLOC,
         .most_entries = kMostEntries});
}

bool is_cuda_history_on() noexcept { return is_recorded; }

void add_pools_to(SnapshotInfo& all) {
  Session::for_each([&](Session& session) {
    if (session.options().device.is_cuda()) all.segments.push_back(session.history().segment());
  });
  for (std::size_t i = 0; i < all.device_traces.size(); ++i) {
    auto& trace = all.device_traces[i];
    auto ours = history_of(static_cast<int>(i)).entries();
    const auto middle = static_cast<std::ptrdiff_t>(trace.size());
    trace.insert(trace.end(), std::make_move_iterator(ours.begin()),
                 std::make_move_iterator(ours.end()));
    std::inplace_merge(trace.begin(), trace.begin() + middle, trace.end(),
                       [](const auto& a, const auto& b) { return a.time_.t_ < b.time_.t_; });
  }
}

}  // namespace coop::plugin
