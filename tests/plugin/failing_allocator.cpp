// An allocator that fails on demand, in front of whatever there is: what plain PyTorch does when its memory
// ends in the middle of an operator. A part of torch.ops.foreign, for the tests of the plugin.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace {

class FailingAllocator final : public c10::Allocator {
 public:
  explicit FailingAllocator(c10::Allocator& behind) : behind_(behind) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes > 0) note(bytes);
    return behind_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return behind_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    behind_.copy_data(to, from, bytes);
  }

  // From now on requests are counted; those with these numbers fail.
  void begin(std::vector<std::int64_t> failing) {
    const std::scoped_lock lock(mutex_);
    sizes_.clear();
    failing_ = std::move(failing);
    is_counting_ = true;
  }
  std::int64_t count() {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::int64_t>(sizes_.size());
  }
  std::vector<std::int64_t> end() {
    const std::scoped_lock lock(mutex_);
    is_counting_ = false;
    return std::move(sizes_);
  }

 private:
  void note(std::size_t bytes) {
    if (!is_counting_) return;
    const std::scoped_lock lock(mutex_);
    const auto number = static_cast<std::int64_t>(sizes_.size());
    sizes_.push_back(static_cast<std::int64_t>(bytes));
    const bool fails = std::find(failing_.begin(), failing_.end(), number) != failing_.end();
    TORCH_CHECK_WITH(OutOfMemoryError, !fails, "the test's allocator has no ", bytes, " bytes");
  }

  c10::Allocator& behind_;
  std::atomic<bool> is_counting_ = false;
  std::mutex mutex_;
  std::vector<std::int64_t> failing_;
  std::vector<std::int64_t> sizes_;
};

FailingAllocator* installed = nullptr;

// For ever: who takes an allocator away ends the process.
void install_failing_allocator() {
  if (installed != nullptr) return;
  installed = new FailingAllocator(*c10::GetCPUAllocator());
  constexpr std::uint8_t kPriority = 200;  // as coop's
  c10::SetCPUAllocator(installed, kPriority);
}

TORCH_LIBRARY_FRAGMENT(foreign, library) {
  library.def("install_failing_allocator() -> ()", &install_failing_allocator);
  library.def("begin_allocations(int[] failing) -> ()",
              [](std::vector<std::int64_t> failing) { installed->begin(std::move(failing)); });
  library.def("allocations() -> int", [] { return installed->count(); });
  // How many bytes each of them was for.
  library.def("end_allocations() -> int[]", [] { return installed->end(); });
}

}  // namespace
