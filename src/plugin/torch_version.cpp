#include "plugin/torch_version.hpp"

#include <string_view>

#include <ATen/Version.h>
#include <c10/util/Exception.h>

namespace coop::plugin {
namespace {

// "2.11." of "2.11.0+cu130": nothing that we touch changes within that.
std::string_view up_to_minor(std::string_view version) {
  const std::size_t minor = version.find('.') + 1;
  return version.substr(0, version.find('.', minor) + 1);
}

// The library's own word, not Python's and not a header's.
std::string running_torch() {
  constexpr std::string_view kBefore = "TORCH_VERSION=";
  const std::string config = at::show_config();
  const std::size_t at = config.find(kBefore);
  if (at == std::string::npos) return "(unknown)";
  const std::size_t begin = at + kBefore.size();
  return config.substr(begin, config.find_first_of(", \n", begin) - begin);
}

}  // namespace

std::string supported_torch() {
  return "2." + std::to_string(COOP_OLDEST_TORCH_MINOR) + " to 2." +
         std::to_string(COOP_NEWEST_TORCH_MINOR);
}

void require_matching_torch() {
  const std::string running = running_torch();
  TORCH_CHECK(up_to_minor(running) == up_to_minor(TORCH_VERSION),
              "coop's plugin was built for PyTorch " TORCH_VERSION ", and this is ", running,
              ". Build it again with this one; supported are ", supported_torch());
}

}  // namespace coop::plugin
