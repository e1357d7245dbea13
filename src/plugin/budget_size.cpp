#include "plugin/budget_size.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include <unistd.h>

#include "core/base/errors.hpp"

namespace coop::plugin {
namespace {

constexpr const char* kGroupsLimit = "/sys/fs/cgroup/memory.max";

// A limit of the control group's; there is none if the file does not hold a number.
Bytes limit_in(const char* path, Bytes otherwise) {
  std::ifstream file(path);
  Bytes limit = 0;
  return file >> limit ? std::min(limit, otherwise) : otherwise;
}

// After this word in a file of the system's.
std::optional<Bytes> number_after(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    Bytes number = 0;
    if (word == name && file >> number) return number;
  }
  return std::nullopt;
}

Bytes share_of(Bytes whole, std::string_view text) {
  double percent = 0;
  std::string_view number = text.substr(0, text.size() - 1);
  if (number.ends_with(' ')) number.remove_suffix(1);  // as in "8 GiB"
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
  bytes = limit_in(kGroupsLimit, bytes);
  return limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", bytes);
}

Bytes free_host_memory_bytes() {
  const auto pages = static_cast<Bytes>(sysconf(_SC_AVPHYS_PAGES));
  Bytes free = pages * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  if (const auto available = number_after("/proc/meminfo", "MemAvailable:")) {
    free = *available << 10U;
  }
  constexpr Bytes kNone = std::numeric_limits<Bytes>::max();
  const Bytes limit = limit_in(kGroupsLimit, kNone);
  if (limit == kNone) return free;
  // Of what the control group holds, files that were read can go.
  const Bytes files = number_after("/sys/fs/cgroup/memory.stat", "inactive_file").value_or(0);
  const Bytes held = std::min(limit_in("/sys/fs/cgroup/memory.current", limit), limit);
  return std::min(free, limit - held + std::min(files, held));
}

Bytes budget_bytes(std::string_view text, Bytes whole) {
  if (text.ends_with('%')) return share_of(whole, text);
  const Bytes bytes = parse_bytes(text);
  if (bytes == 0) {
    throw InvalidArgument("a budget of 0 bytes: write for example 8GiB, 50% or a number of bytes");
  }
  return bytes;
}

std::optional<std::string> size_of_at_least(Bytes bytes, Bytes most) {
  constexpr Bytes kMiB = 1_MiB;
  constexpr Bytes kTenths = 10;
  const Bytes mib = bytes / kMiB + (bytes % kMiB != 0 ? 1 : 0);
  if (mib > most / kMiB) return std::nullopt;
  if (mib % 1024 == 0) return std::to_string(mib / 1024) + "GiB";
  // A tenth of a GiB is at most a hundredth of these.
  const Bytes tenths = (bytes * kTenths + 1_GiB - 1) / 1_GiB;
  if (bytes < 10_GiB || tenths * 1_GiB / kTenths > most) return std::to_string(mib) + "MiB";
  std::string text = std::to_string(tenths / kTenths);
  if (tenths % kTenths != 0) text.append(".").append(std::to_string(tenths % kTenths));
  return text + "GiB";
}

}  // namespace coop::plugin
