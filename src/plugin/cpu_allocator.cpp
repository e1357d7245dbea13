#include "plugin/cpu_allocator.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

class CpuAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    Session* session = Session::current_on(c10::Device(c10::kCPU));
    // The context must be the data itself: oneDNN asks for it.
    if (session != nullptr && bytes > 0) return session->allocate(bytes);
    return plain_allocator().allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_raw_memory; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

c10::Allocator* before_us = nullptr;

}  // namespace

c10::Allocator& plain_allocator() { return *before_us; }

void free_raw_memory(void* data) noexcept {
  if (data == nullptr || Session::free_anywhere(data)) return;
  before_us->raw_deallocate(data);
}

void install_cpu_allocator() {
  if (before_us != nullptr) return;
  before_us = c10::GetCPUAllocator();
  TORCH_CHECK(before_us->raw_deleter() != nullptr,
              "coop: another CPU allocator is in place, one that coop cannot stand in front of");
  // The priority is that of a user's choice: higher than what libraries register.
  constexpr std::uint8_t kPriority = 200;
  static auto& ours = *new CpuAllocator;  // for ever
  c10::SetCPUAllocator(&ours, kPriority);
  TORCH_CHECK(c10::GetCPUAllocator() != before_us,
              "coop: another CPU allocator has a higher priority");
}

}  // namespace coop::plugin
