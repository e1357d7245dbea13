#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/storage_names.hpp"
#include "core/engine/observer.hpp"
#include "sim/trace/trace.hpp"

namespace coop::cli {

// Counts, by operator, what a run evicts and what it runs again.
class EvictionTally final : public EngineObserver {
 public:
  struct Line {
    std::uint32_t op = 0;
    std::uint64_t times = 0;
    Bytes bytes = 0;  // evicted
    double ns = 0;    // recomputed
  };

  EvictionTally(const sim::Trace& trace, const StorageNames& names);

  void on_event(const EngineEvent& event) noexcept override;

  // The most bytes first.
  [[nodiscard]] std::vector<Line> evicted() const;
  // The most time first.
  [[nodiscard]] std::vector<Line> recomputed() const;
  [[nodiscard]] std::string name(std::uint32_t op) const;

 private:
  // By the operator's name; one more for versions that have been overwritten since, and are nobody's.
  [[nodiscard]] std::uint32_t past_version() const {
    return static_cast<std::uint32_t>(trace_.name_count());
  }

  const sim::Trace& trace_;
  const StorageNames& names_;
  std::vector<Line> evicted_;
  std::vector<Line> recomputed_;
};

inline std::vector<EvictionTally::Line> first_of(std::vector<EvictionTally::Line> lines,
                                                 std::size_t most) {
  lines.resize(std::min(lines.size(), most));
  return lines;
}

}  // namespace coop::cli
