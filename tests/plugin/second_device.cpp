// Two more devices, for tests of several budgets where there is no GPU: "second:0" and ":1" to the tests, of PyTorch's kind
// for whoever brings his own. Their memory is the host's and their kernels are the CPU's, on the same bytes; but they
// have an allocator, a generator and a current device of their own, as GPUs do. coop knows them as it knows GPUs: by a
// Device (plugin/device.hpp).
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/mul.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "plugin/cpu_allocator.hpp"
#include "plugin/dispatch_key.hpp"
#include "plugin/operator_times.hpp"
#include "plugin/session.hpp"

namespace coop::plugin {
namespace {

constexpr c10::DeviceType kType = c10::kPrivateUse1;
constexpr c10::DeviceIndex kDevices = 2;
constinit thread_local c10::DeviceIndex current_index = 0;

c10::Device current_device() { return {kType, current_index}; }

// --- memory ---

std::array<std::atomic<std::size_t>, kDevices> plain_bytes;
std::atomic<Bytes> all_bytes = Bytes{1} << 30U;  // that each says it has

// What is allocated without a budget.
struct PlainBlock {
  std::size_t bytes = 0;
  c10::DeviceIndex index = 0;
};
constexpr std::size_t kHeader = 64;

void free_plain(void* data) {
  if (data == nullptr) return;
  auto* block = reinterpret_cast<PlainBlock*>(static_cast<std::byte*>(data) - kHeader);
  plain_bytes.at(static_cast<std::size_t>(block->index)) -= block->bytes;
  std::free(block);
}

class PlainAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, current_device()};
    const std::size_t all = (bytes + 2 * kHeader - 1) / kHeader * kHeader;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kHeader, all));
    TORCH_CHECK_WITH(OutOfMemoryError, memory != nullptr, "no memory");
    *reinterpret_cast<PlainBlock*>(memory) = {bytes, current_index};
    plain_bytes.at(static_cast<std::size_t>(current_index)) += bytes;
    return {memory + kHeader, memory + kHeader, &free_plain, current_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_plain; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// Asks for the budget of the current device, as the allocator of GPUs does.
class SecondAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    Session* session = bytes > 0 ? Session::current_on(current_device()) : nullptr;
    return session != nullptr ? session->allocate(bytes) : plain.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_any; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  PlainAllocator plain;

 private:
  static void free_any(void* data) {
    if (!Session::free_anywhere(data)) free_plain(data);
  }
};

SecondAllocator& allocator() {
  static auto& it = *new SecondAllocator;
  return it;
}

class SecondDevice final : public Device {
 public:
  explicit SecondDevice(c10::Device which) : Device(which) {}
  [[nodiscard]] Bytes whole_bytes() const override { return all_bytes; }
  [[nodiscard]] Bytes free_bytes() const override { return whole_bytes() - bytes_now(); }
  void install_allocator() override {}
  [[nodiscard]] c10::Allocator& plain_allocator() const override { return allocator().plain; }
  [[nodiscard]] Bytes bytes_before() override { return bytes_now(); }
  [[nodiscard]] Bytes bytes_now() const override {
    return plain_bytes.at(static_cast<std::size_t>(which().index()));
  }
  [[nodiscard]] bool has_stand_ins() const override { return false; }
  std::byte* acquire(Bytes bytes) override { return host_.acquire(bytes); }
  void give_back(std::byte* memory, Bytes bytes) noexcept override {
    host_.give_back(memory, bytes);
  }
  void discard(std::byte* /*memory*/, Bytes /*bytes*/) noexcept override {}
  void copy(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void move(void* to, const void* from, std::size_t bytes) override {
    std::memmove(to, from, bytes);
  }
  std::uint64_t sum(const void* data, std::size_t bytes, Sample /*sample*/) noexcept override {
    return checksum(data, bytes, Sample::kAll);
  }
  [[nodiscard]] std::unique_ptr<OperatorTimes> make_times() override {
    return std::make_unique<WallTimes>();
  }

 private:
  HostBacking host_;
};

const DeviceKind kSecond(kType, [](c10::Device which) -> std::unique_ptr<Device> {
  return std::make_unique<SecondDevice>(which);
});

// --- the current device ---

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = current_device();
    if (device.has_index()) current_index = device.index();
    return before;
  }
  c10::Device getDevice() const override { return current_device(); }
  void setDevice(c10::Device device) const override { current_index = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_index = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void record(void** /*event*/, const c10::Stream& /*stream*/, c10::DeviceIndex /*index*/,
              c10::EventFlag /*flag*/) const override {}
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  bool queryEvent(void* /*event*/) const override { return true; }
  void destroyEvent(void* /*event*/, c10::DeviceIndex /*index*/) const noexcept override {}
  bool queryStream(const c10::Stream& /*stream*/) const override { return true; }
  void synchronizeStream(const c10::Stream& /*stream*/) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// --- random numbers ---

// Counts, as a GPU's does: with each operator a new seed for the CPU's.
struct Generator final : c10::GeneratorImpl {
  explicit Generator(c10::DeviceIndex index)
      : GeneratorImpl(c10::Device(kType, index),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(std::uint64_t seed) override { seed_ = seed, offset_ = 0; }
  void set_offset(std::uint64_t offset) override { offset_ = offset; }
  std::uint64_t get_offset() const override { return offset_; }
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override { return seed_; }
  void set_state(const c10::TensorImpl& /*state*/) override { TORCH_CHECK(false, "not there"); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    TORCH_CHECK(false, "not there");
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    seed_ = other->current_seed();
    offset_ = other->get_offset();
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::intrusive_ptr<c10::GeneratorImpl>::reclaim(clone_impl());
  }
  Generator* clone_impl() const override {
    auto* it = new Generator(device().index());
    it->seed_ = seed_;
    it->offset_ = offset_;
    return it;
  }
  c10::DeviceType device_type() { return kType; }

  std::uint64_t next() { return seed_ * 1'000'003 + offset_++; }

 private:
  std::uint64_t seed_ = 0;
  std::uint64_t offset_ = 0;
};

at::Generator& generator_of(c10::DeviceIndex index) {
  static auto& all = *new std::array{at::make_generator<Generator>(c10::DeviceIndex{0}),
                                     at::make_generator<Generator>(c10::DeviceIndex{1})};
  return all.at(static_cast<std::size_t>(std::max<c10::DeviceIndex>(index, 0)));
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return generator_of(index);
  }
};

// --- kernels ---

// The CPU's, on the same bytes.
class OnHost {
 public:
  // A view needs no contents, and its tensor may have none now.
  explicit OnHost(bool is_view = false) : is_view_(is_view) {}

  at::Tensor host(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kType) return tensor;
    device_ = tensor.device();
    const c10::Storage& storage = tensor.storage();
    auto& twin = twins_[storage.unsafeGetStorageImpl()];
    if (!twin.host) {
      twin.own = storage;
      const bool has_data = storage.nbytes() > 0 && !is_view_;
      void* data = has_data ? storage.mutable_data() : nullptr;
      twin.host = c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
          c10::DataPtr(data, c10::Device(c10::kCPU)), nullptr, /*resizable=*/false);
    }
    at::Tensor made = over(twin.host, c10::DispatchKey::CPU, tensor);
    pairs_.emplace_back(made, tensor);
    return made;
  }

  // What the kernel has returned: an argument, a view of one, or something new.
  at::Tensor own(const at::Tensor& tensor) {
    if (!tensor.defined() || !device_) return tensor;
    for (const auto& [made, of] : pairs_) {
      if (made.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) return of;
    }
    for (const auto& [impl, twin] : twins_) {
      if (twin.host.unsafeGetStorageImpl() != tensor.storage().unsafeGetStorageImpl()) continue;
      return over(twin.own, c10::DispatchKey::PrivateUse1, tensor);
    }
    at::Tensor result =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(*device_));
    copy(host(result), tensor);
    return result;
  }

  static void copy(const at::Tensor& to, const at::Tensor& from) {
    const OutOfScope plain;
    at::_ops::copy_::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU),
                                const_cast<at::Tensor&>(to), from, false);  // NOLINT
  }

  c10::IValue host(const c10::IValue& value, bool is_generator) {
    if (value.isTensor()) return host(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& it : value.toListRef()) list.push_back(host(it.toTensor()));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& it : value.toListRef()) {
        list.push_back(it.isNone() ? std::nullopt : std::optional(host(it.toTensor())));
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().type() == kType) {
      device_ = value.toDevice();
      return c10::Device(c10::kCPU);
    }
    if (!is_generator) return value;
    at::Generator from = value.isGenerator()
                             ? value.toGenerator()
                             : generator_of(device_.value_or(current_device()).index());
    if (from.device().is_cpu()) return value;
    const std::scoped_lock lock(from.mutex());
    return at::detail::createCPUGenerator(from.get<Generator>()->next());
  }
  c10::IValue own(const c10::IValue& value) {
    if (value.isTensor()) return own(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const c10::IValue& it : value.toListRef()) list.push_back(own(it.toTensor()));
    return list;
  }

  // A device's own memory is all that its kernels need: nothing of theirs is in the host's budget.
  class OutOfScope {
   public:
    OutOfScope() : was_in_(is_thread_in_scope()) { put_thread_in_scope(false); }
    OutOfScope(const OutOfScope&) = delete;
    OutOfScope& operator=(const OutOfScope&) = delete;
    ~OutOfScope() { put_thread_in_scope(was_in_); }

   private:
    bool was_in_;
  };

 private:
  struct Twin {
    c10::Storage own;
    c10::Storage host;
  };

  static at::Tensor over(const c10::Storage& storage, c10::DispatchKey key,
                         const at::Tensor& like) {
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                      like.storage_offset());
    return made;
  }

  bool is_view_;
  std::optional<c10::Device> device_;
  std::unordered_map<c10::StorageImpl*, Twin> twins_;
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::size_t count = schema.arguments().size();
  const std::size_t under = stack->size() - count;
  const auto& results = schema.returns();
  const bool is_view = std::any_of(results.begin(), results.end(), [](const auto& it) {
    return it.alias_info() != nullptr && !it.alias_info()->isWrite();
  });
  OnHost call(is_view);
  torch::jit::Stack arguments;
  for (std::size_t i = 0; i < count; ++i) {
    arguments.push_back(
        call.host((*stack)[under + i], schema.arguments()[i].name() == "generator"));
  }
  {
    const OnHost::OutOfScope plain;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &arguments);
  }
  stack->resize(under);
  for (const c10::IValue& result : arguments) stack->push_back(call.own(result));
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                 std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                         std::optional<at::Device> device, std::optional<bool> /*pinned*/) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator(),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  OnHost call;
  const at::Tensor target = call.host(to);
  OnHost::copy(target, call.host(from));
  return to;
}

// The CPU's own takes its numbers from the host's generator, with nobody asked.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> trains) {
  const double kept = trains.value_or(true) ? 1 - p : 1;
  const at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  mask.bernoulli_(kept);
  return {at::mul(at::mul(input, mask), kept == 0 ? 0 : 1 / kept), mask};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("native_dropout", &native_dropout);
}

TORCH_LIBRARY(second, library) {
  library.def("start() -> ()", [] {
    c10::SetAllocator(kType, &allocator(), 0);
    at::RegisterPrivateUse1HooksInterface(new Hooks);
  });
  library.def("manual_seed(int seed) -> ()", [](std::int64_t seed) {
    for (c10::DeviceIndex i = 0; i < kDevices; ++i) {
      generator_of(i).set_current_seed(static_cast<std::uint64_t>(seed));
    }
  });
  library.def("random_state(int device) -> int[]", [](std::int64_t device) {
    at::Generator& it = generator_of(static_cast<c10::DeviceIndex>(device));
    return std::vector{static_cast<std::int64_t>(it.current_seed()),
                       static_cast<std::int64_t>(it.get_offset())};
  });
  library.def("set_device(int device) -> ()",
              [](std::int64_t device) { current_index = static_cast<c10::DeviceIndex>(device); });
  // Outside of any budget.
  library.def("have(int bytes) -> ()",
              [](std::int64_t bytes) { all_bytes = static_cast<Bytes>(bytes); });
  library.def("plain_bytes(int device) -> int", [](std::int64_t device) {
    return static_cast<std::int64_t>(plain_bytes.at(static_cast<std::size_t>(device)));
  });
}

}  // namespace
}  // namespace coop::plugin
