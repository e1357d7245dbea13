#include "plugin/budget_size.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include <unistd.h>

#include "core/base/errors.hpp"

namespace coop::plugin {
namespace {

// A limit of the control group's; there is none if the file does not hold a number.
Bytes limit_in(const char* path, Bytes otherwise) {
  std::ifstream file(path);
  Bytes limit = 0;
  return file >> limit ? std::min(limit, otherwise) : otherwise;
}

Bytes share_of(Bytes whole, std::string_view text) {
  double percent = 0;
  const std::string_view number = text.substr(0, text.size() - 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  // Written so that NaN is refused.
  if (!is_number || !(percent > 0 && percent <= 100)) {
    throw InvalidArgument("'" + std::string(text) +
                          "' is not a share of the device's memory: write a number above 0 and up "
                          "to 100, for example 50%");
  }
  return static_cast<Bytes>(static_cast<double>(whole) * percent / 100);
}

}  // namespace

Bytes host_memory_bytes() {
  const auto pages = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES));
  Bytes bytes = pages * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  bytes = limit_in("/sys/fs/cgroup/memory.max", bytes);
  return limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", bytes);
}

Bytes budget_bytes(std::string_view text, Bytes whole) {
  if (text.ends_with('%')) return share_of(whole, text);
  const Bytes bytes = parse_bytes(text);
  if (bytes == 0) {
    throw InvalidArgument("a budget of 0 bytes: write for example 8GiB, 50% or a number of bytes");
  }
  return bytes;
}

}  // namespace coop::plugin
