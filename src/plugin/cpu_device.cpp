// The host's memory.
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "plugin/cpu_allocator.hpp"
#include "plugin/device.hpp"
#include "plugin/host_memory.hpp"

namespace coop::plugin {
namespace {

// What madvise is about: the whole pages in a piece of memory.
struct Pages {
  std::uintptr_t begin;
  std::uintptr_t end;
};
Pages pages_in(std::byte* memory, Bytes bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  return {.begin = (begin + page - 1) / page * page, .end = (begin + bytes) / page * page};
}

// If it does not work, nothing is lost but time or memory.
void advise(Pages pages, int advice) noexcept {
  if (pages.begin >= pages.end) return;
  void* begin = reinterpret_cast<void*>(pages.begin);  // NOLINT
  static_cast<void>(madvise(begin, pages.end - pages.begin, advice));
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(c10::Device which) : Device(which) {}

  [[nodiscard]] Bytes whole_bytes() const override { return host_memory_bytes(); }
  [[nodiscard]] Bytes free_bytes() const override { return free_host_memory_bytes(); }
  void install_allocator() override { install_cpu_allocator(); }
  [[nodiscard]] c10::Allocator& plain_allocator() const override {
    return plugin::plain_allocator();
  }
  [[nodiscard]] Bytes bytes_before() override { return 0; }
  [[nodiscard]] bool has_stand_ins() const override { return true; }

  // It is one piece that is used again and again, all of it: what large pages are for.
  std::byte* acquire(Bytes bytes) override {
    std::byte* memory = host_.acquire(bytes);
    advise(pages_in(memory, bytes), MADV_HUGEPAGE);
    return memory;
  }
  void give_back(std::byte* memory, Bytes bytes) noexcept override {
    host_.give_back(memory, bytes);
  }
  void discard(std::byte* memory, Bytes bytes) noexcept override {
    advise(pages_in(memory, bytes), MADV_DONTNEED);
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void move(void* to, const void* from, std::size_t bytes) override {
    std::memmove(to, from, bytes);
  }
  std::uint64_t sum(const void* data, std::size_t bytes, Sample sample) noexcept override {
    return checksum(data, bytes, sample);
  }
  [[nodiscard]] std::unique_ptr<OperatorTimes> make_times() override {
    return std::make_unique<WallTimes>();
  }

 private:
  HostBacking host_;
};

const DeviceKind kCpu(c10::kCPU, [](c10::Device which) -> std::unique_ptr<Device> {
  return std::make_unique<CpuDevice>(which);
});

}  // namespace
}  // namespace coop::plugin
