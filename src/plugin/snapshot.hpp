#pragma once

// What there is to count in a budget's scope.

#include <cstdint>
#include <map>
#include <string>

#include "core/engine/evicting_pool.hpp"

namespace coop::plugin {

class Session;

// Of one operator: how often it was run again, and how long that took.
struct Recomputed {
  std::int64_t times = 0;
  std::int64_t ns = 0;
};
using RecomputedByOperator = std::map<std::string, Recomputed>;

struct Snapshot {
  std::map<std::string, std::int64_t> totals;  // only ever grow
  std::map<std::string, std::int64_t> state;   // as it is now
  std::map<std::string, std::int64_t>
      made;  // bytes, by why they can never be evicted; "none": they can
  EvictionStats evictions;
  RecomputedByOperator by_operator;

  // Since the pool was made.
  static Snapshot of(Session& session);
  // What happened since an earlier one.
  [[nodiscard]] Snapshot since(const Snapshot& before) const;
};

}  // namespace coop::plugin
