#pragma once

// The pool's holes ordered by size, then address: best fit in O(log n).
//
// Keys are values, never references into blocks: a hole that changes is taken out under its old key
// and put back under its new one, so no key ever changes inside the set.
//
// There are always as many nodes as held blocks plus one, in the set or spare, and never more holes
// than that (two holes are never neighbours). So a node is made when a block is placed, where an
// exception is still allowed, and freeing needs none.

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/pool/address_order.hpp"

namespace coop {

class HolesBySize {
 public:
  using Key = std::pair<Grains, Grains>;  // size, begin

  explicit HolesBySize(Grains total) : holes_{{total, 0}} {}

  // The smallest hole that is at least this long, the leftmost of equals.
  [[nodiscard]] std::optional<Extent> best_fit(Grains at_least) const;

  // Before a block is placed: makes a node for it. May throw; nothing has changed then.
  void expect_block();
  // The block that was expected could not be placed.
  void forget_block() noexcept { spare_.pop_back(); }
  void note_taken(Extent hole, Extent block) noexcept;
  void note_released(const AddressOrder::Joined& joined) noexcept;
  void note_slid(const AddressOrder::Joined& joined) noexcept;

  [[nodiscard]] const std::set<Key>& holes() const { return holes_; }

 private:
  void add(Extent hole) noexcept;
  void remove(Extent hole) noexcept;

  std::set<Key> holes_;
  std::vector<std::set<Key>::node_type> spare_;
};

}  // namespace coop
