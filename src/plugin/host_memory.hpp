#pragma once

// How much of the host's memory this process may have. Containers and batch systems put processes into control
// groups, one inside the other; each that has a limit counts. For what is free, so does what `ulimit -v` says.

#include <filesystem>
#include <vector>

#include "core/base/bytes.hpp"

namespace coop::plugin {

// What this process may use of the machine's memory.
Bytes host_memory_bytes();
// And what of that nobody has now.
Bytes free_host_memory_bytes();

struct GroupLimit {
  Bytes most;
  Bytes left;
};
// Of the control groups that `memberships` (/proc/self/cgroup) names, and of all above them, the innermost first: those
// that have a limit. Groups are folders below `mounted`; in a container a group's own path may lead nowhere, and its
// limit is where the mount is.
std::vector<GroupLimit> group_limits(const std::filesystem::path& memberships,
                                     const std::filesystem::path& mounted);

}  // namespace coop::plugin
