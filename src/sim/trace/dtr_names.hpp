#pragma once

// The names by which a DTR log calls storages: each has one storage, a storage may have several, and goes with
// the last of them.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/trace/lines.hpp"
#include "sim/trace/trace.hpp"

namespace coop::sim {

class DtrNames {
 public:
  [[nodiscard]] StorageNumber find(std::string_view name) const {
    const auto found = storages_.find(name);
    if (found == storages_.end()) fail_unknown(name);
    return found->second;
  }
  void expect_new(std::string_view name) const {
    if (storages_.contains(name)) throw TraceError(shown(name) + " exists already");
  }

  void bind(std::string_view name, StorageNumber storage) {
    expect_new(name);
    storages_.emplace(name, storage);
    if (names_of_.size() <= index_of(storage)) names_of_.resize(index_of(storage) + std::size_t{1});
    ++names_of_[index_of(storage)];
  }

  // These give the storage that has lost its last name by it, if one has.
  std::optional<StorageNumber> forget(std::string_view name) {
    const auto found = storages_.find(name);
    if (found == storages_.end()) fail_unknown(name);
    const StorageNumber storage = found->second;
    storages_.erase(found);
    return let_go(storage);
  }
  std::optional<StorageNumber> rebind(std::string_view name, StorageNumber storage) {
    const auto found = storages_.find(name);
    if (found == storages_.end()) fail_unknown(name);
    ++names_of_[index_of(storage)];  // first: it may be the same
    return let_go(std::exchange(found->second, storage));
  }

 private:
  // So that nobody makes a string to look for one.
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  [[noreturn]] static void fail_unknown(std::string_view name) {
    throw TraceError(shown(name) + " is unknown: never made, or released");
  }
  std::optional<StorageNumber> let_go(StorageNumber storage) {
    return --names_of_[index_of(storage)] == 0 ? std::optional(storage) : std::nullopt;
  }

  std::unordered_map<std::string, StorageNumber, Hash, std::equal_to<>> storages_;
  std::vector<std::uint32_t> names_of_;  // how many, by storage
};

}  // namespace coop::sim
