#pragma once

#include <string>
#include <vector>

#include "core/lineage/graph.hpp"
#include "sim/trace/trace.hpp"

namespace coop::cli {

// What people call a storage: its own name where it has one, otherwise the operator that made it.
class StorageNames {
 public:
  explicit StorageNames(const sim::Trace& trace);

  [[nodiscard]] std::string name(sim::StorageNumber storage) const;
  // The operator that made it; kNoName: it comes from outside.
  [[nodiscard]] sim::NameNumber op(sim::StorageNumber storage) const {
    return ops_[sim::index_of(storage)];
  }
  // As the engine names it: the number and 1 more, or 0 for nobody's.
  [[nodiscard]] std::string name_of_token(Token token) const;

 private:
  const sim::Trace& trace_;
  std::vector<sim::NameNumber> ops_;  // by storage
};

}  // namespace coop::cli
