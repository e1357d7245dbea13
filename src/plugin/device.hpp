#pragma once

// The memory that a budget is about, the host's or a GPU's, and what is done with it.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>

#include "core/pool/backing.hpp"
#include "plugin/checksum.hpp"
#include "plugin/memory_history.hpp"
#include "plugin/operator_times.hpp"
#include "plugin/stream_order.hpp"

namespace coop::plugin {

class Device {
 public:
  explicit Device(c10::Device which) : which_(which) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] c10::Device which() const { return which_; }
  [[nodiscard]] bool has(const c10::StorageImpl& impl) const {
    const c10::Device device = impl.device();
    return device.type() == which_.type() && (which_.is_cpu() || device == which_);
  }

  // All that there is, for budgets like "50%".
  [[nodiscard]] virtual Bytes whole_bytes() const = 0;
  // What of that nobody has now.
  [[nodiscard]] virtual Bytes free_bytes() const = 0;
  // Puts our allocator in front of PyTorch's.
  virtual void install_allocator() = 0;
  // There is no pool left: PyTorch may have its own back.
  virtual void remove_allocator() noexcept {}
  [[nodiscard]] virtual c10::Allocator& plain_allocator() const = 0;

  // Note [What was there before]
  //
  // The host gives memory when it is first touched, and takes it back. So there the pool is as large as the
  // budget, and blocks that are never touched stand in it for what lies outside. A GPU gives all of a pool at
  // once: there what PyTorch holds when the budget begins is taken off the pool's size instead.
  [[nodiscard]] virtual Bytes bytes_before() = 0;
  [[nodiscard]] virtual bool has_stand_ins() const = 0;
  // Where there are none: what PyTorch holds by now, counted as bytes_before() counts it.
  [[nodiscard]] virtual Bytes bytes_now() const { return 0; }

  // A pool's memory. Throws std::bad_alloc.
  virtual std::byte* acquire(Bytes bytes) = 0;
  virtual void give_back(std::byte* memory, Bytes bytes) noexcept = 0;
  // Nobody needs what is there: the system may have it until it is written again.
  virtual void discard(std::byte* memory, Bytes bytes) noexcept = 0;

  // In the order of the operators before and after it.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // The same; where it goes to the left, the two places may overlap.
  virtual void move(void* to, const void* from, std::size_t bytes) = 0;
  // All of it has happened when this returns.
  virtual void wait() {}
  // 0: that would take too long.
  virtual std::uint64_t sum(const void* data, std::size_t bytes, Sample sample) noexcept = 0;

  // Before an operator of this device that multiplies matrices, on the thread and the stream that it runs on: what
  // the device's library keeps for such is taken now, and not in its middle.
  virtual void settle_workspace() {}
  [[nodiscard]] virtual std::unique_ptr<OperatorTimes> make_times() = 0;
  // Null where there are no streams.
  [[nodiscard]] virtual std::unique_ptr<StreamOrder> make_stream_order() { return nullptr; }
  // For snapshots of what it has.
  [[nodiscard]] MemoryHistory& history() { return history_; }

 private:
  c10::Device which_;
  MemoryHistory history_;
};

// For ever. Throws InvalidArgument if there is no such device, or if this library was built without it.
Device& device_at(c10::Device which);

// That there can be on it: it has no more.
[[nodiscard]] Bytes most_budget(const Device& device);

// Whether there can be budgets for such.
[[nodiscard]] bool has_kind(c10::DeviceType type);

// How a kind of device becomes known: one object of this, in the file that implements it.
using MakeDevice = std::unique_ptr<Device> (*)(c10::Device which);
struct DeviceKind {
  DeviceKind(c10::DeviceType type, MakeDevice make);
};

}  // namespace coop::plugin
