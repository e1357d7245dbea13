#include "plugin/concerned.hpp"

#include <algorithm>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "plugin/device.hpp"
#include "plugin/recorded_call.hpp"

namespace coop::plugin {

namespace {

// "cuda" is whichever GPU is the current one.
c10::Device with_index(c10::Device device) {
  if (device.has_index() || device.is_cpu() || !has_kind(device.type())) return device;
  return c10::impl::getDeviceGuardImpl(device.type())->getDevice();
}

}  // namespace

Concerned concerned_by(const CurrentSession& inside, std::span<const c10::IValue> arguments) {
  Concerned concerned;
  const auto add = [&](c10::Device device) {
    Session* session = Session::active_on(device);
    if (session == nullptr) return;
    const bool is_there = std::find(concerned.begin(), concerned.end(), session) != concerned.end();
    if (!is_there) concerned.push_back(session);
  };
  bool has_device = false;
  for_each_tensor(arguments, [&](const at::Tensor& tensor, std::size_t, std::int64_t) {
    // A number that was made a tensor for this call is nobody's.
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
    has_device = true;
    add(tensor.device());
  });
  // Where it is to make something.
  for (const c10::IValue& it : arguments) {
    if (!it.isDevice()) continue;
    has_device = true;
    add(with_index(it.toDevice()));
  }
  if (!has_device) add(c10::Device(c10::kCPU));
  if (concerned.empty()) concerned.push_back(&*inside);
  return concerned;
}

}  // namespace coop::plugin
