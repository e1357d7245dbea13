#pragma once

#include <algorithm>
#include <optional>

#include "core/policy/policy.hpp"
#include "core/policy/window_search.hpp"

namespace coop {

// Evicts the cheapest window at once.
template <Score S>
class WindowPolicy final : public Policy {
 public:
  using Policy::Policy;

  [[nodiscard]] bool needs_addresses() const override { return true; }
  void choose_victims(const Pool& pool, const Request& request,
                      std::vector<BlockId>& victims) override {
    const AddressOrder& order = pool.order();
    const Grains grains = to_grains(request.bytes);
    std::optional<Window> window;
    // What lives long should not lie in the middle, even if a window there is cheaper today.
    if (traits().keeps_long_lived_left && request.placement == Placement::kLongLived) {
      const Grains limit =
          pool.long_lived_limit() + std::min(grains, order.total() - pool.long_lived_limit());
      window = cheapest_window(order, grains, request.now, S{}, search_, limit);
    }
    if (!window) window = cheapest_window(order, grains, request.now, S{}, search_);
    if (!window) return;
    for_each_piece(order, window->extent, [&](const Chunk& chunk, int slot) {
      if (!chunk.is_hole(slot)) victims.push_back(pool.id_of(chunk.block_at(slot)));
    });
  }

 private:
  WindowSearch search_;
};

}  // namespace coop
