#include "plugin/device.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/errors.hpp"

namespace coop::plugin {
namespace {

std::map<c10::DeviceType, MakeDevice>& kinds() {
  static auto& all = *new std::map<c10::DeviceType, MakeDevice>;
  return all;
}

}  // namespace

DeviceKind::DeviceKind(c10::DeviceType type, MakeDevice make) { kinds().emplace(type, make); }

bool has_kind(c10::DeviceType type) { return kinds().contains(type); }

Bytes most_budget(const Device& device) { return std::min(device.whole_bytes(), kMaxPoolBytes); }

Device& device_at(c10::Device which) {
  static auto& mutex = *new std::mutex;
  static auto& devices = *new std::map<std::pair<c10::DeviceType, int>, std::unique_ptr<Device>>;
  const auto kind = kinds().find(which.type());
  if (kind == kinds().end()) {
    throw InvalidArgument("budgets for '" + c10::DeviceTypeName(which.type(), true) +
                          "' are not there: this coop was built against a PyTorch without it");
  }
  const std::scoped_lock lock(mutex);
  auto& device = devices[{which.type(), which.index()}];
  if (device == nullptr) device = kind->second(which);
  return *device;
}

}  // namespace coop::plugin
