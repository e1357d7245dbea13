#include "plugin/host_memory.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include <sys/resource.h>
#include <unistd.h>

namespace coop::plugin {
namespace {

using Path = std::filesystem::path;

// None where there is no such file, or "max" in it.
std::optional<Bytes> number_in(const Path& path) {
  std::ifstream file(path);
  Bytes number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// After this word in a file of the system's.
std::optional<Bytes> number_after(const Path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    Bytes number = 0;
    if (word == name && file >> number) return number;
  }
  return std::nullopt;
}

// The files of a group, of the second kind of control groups and of the first.
struct Names {
  const char* most;
  const char* used;
  const char* files;  // in memory.stat
};
constexpr Names kSecond{"memory.max", "memory.current", "inactive_file"};
constexpr Names kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

void add_limit(std::vector<GroupLimit>& limits, const Path& group, const Names& names) {
  const auto most = number_in(group / names.most);
  if (!most) return;
  const Bytes used = std::min(number_in(group / names.used).value_or(0), *most);
  // Of what the group holds, files that were read can go.
  const Bytes files = number_after(group / "memory.stat", names.files).value_or(0);
  limits.push_back({.most = *most, .left = *most - used + std::min(files, used)});
}

// Of "freezer,memory".
bool has_memory(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string each; std::getline(list, each, ',');) {
    if (each == "memory") return true;
  }
  return false;
}

std::vector<GroupLimit> limits_here() {
  return group_limits("/proc/self/cgroup", "/sys/fs/cgroup");
}

Bytes page_bytes() { return static_cast<Bytes>(sysconf(_SC_PAGESIZE)); }

// Addresses that `ulimit -v` leaves.
std::optional<Bytes> free_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const Bytes most = limit.rlim_cur;
  return most - std::min(most, number_in("/proc/self/statm").value_or(0) * page_bytes());
}

}  // namespace

std::vector<GroupLimit> group_limits(const Path& memberships, const Path& mounted) {
  std::vector<GroupLimit> limits;
  std::ifstream file(memberships);
  // "0::/user/job", or of the first kind "3:freezer,memory:/user/job".
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has_memory(controllers)) continue;
    const Path root = controllers.empty() ? mounted : mounted / "memory";
    const Path below = Path(line.substr(second + 1)).relative_path();
    for (Path group = below; !group.empty(); group = group.parent_path()) {
      add_limit(limits, root / group, controllers.empty() ? kSecond : kFirst);
    }
    add_limit(limits, root, controllers.empty() ? kSecond : kFirst);
  }
  return limits;
}

Bytes host_memory_bytes() {
  Bytes bytes = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  for (const GroupLimit& limit : limits_here()) bytes = std::min(bytes, limit.most);
  return bytes;
}

Bytes free_host_memory_bytes() {
  Bytes free = static_cast<Bytes>(sysconf(_SC_AVPHYS_PAGES)) * page_bytes();
  if (const auto available = number_after("/proc/meminfo", "MemAvailable:")) {
    free = *available << 10U;
  }
  for (const GroupLimit& limit : limits_here()) free = std::min(free, limit.left);
  return std::min(free, free_addresses().value_or(free));
}

}  // namespace coop::plugin
