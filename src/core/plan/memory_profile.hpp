#pragma once

#include <cstddef>
#include <vector>

#include "core/base/bytes.hpp"

namespace coop {

// How much memory every moment holds, where a stretch of moments may be given more, and asked for its most. Both
// take time logarithmic in the moments.
class MemoryProfile {
 public:
  explicit MemoryProfile(const std::vector<Bytes>& memory);

  struct Stretch {  // of moments
    std::size_t from = 0;
    std::size_t end = 0;  // the first behind it
  };
  [[nodiscard]] Bytes most(const Stretch& stretch) const;  // 0 if it is empty
  void add(const Stretch& stretch, Bytes bytes);
  void take(const Stretch& stretch, Bytes bytes);  // from a stretch to which as much was added

 private:
  // A binary tree in an array: the children of node i are 2i and 2i + 1, and moments are leaves.
  struct Node {
    Bytes most = 0;   // of its moments, but for what was added to those above it
    Bytes added = 0;  // to all of its moments, and counted in `most`
  };
  enum class Change : bool { kAdd, kTake };

  void change(std::size_t node, const Stretch& of_node, const Stretch& stretch, Bytes bytes,
              Change change);
  [[nodiscard]] Bytes most(std::size_t node, const Stretch& of_node, const Stretch& stretch) const;
  void update(std::size_t node);

  std::size_t leaves_;
  std::vector<Node> nodes_;
};

}  // namespace coop
