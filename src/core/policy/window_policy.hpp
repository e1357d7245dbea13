#pragma once

#include "core/policy/policy.hpp"
#include "core/policy/window_search.hpp"

namespace coop {

// Evicts the cheapest window at once.
template <Score S>
class WindowPolicy final : public Policy {
 public:
  using Policy::Policy;

  void choose_victims(const Pool& pool, const Request& request,
                      std::vector<BlockId>& victims) override {
    const AddressOrder& order = pool.order();
    const auto window = cheapest_window(order, to_grains(request.bytes), request.now, S{}, search_);
    if (!window) return;
    for_each_piece(order, window->extent, [&](const Chunk& chunk, int slot) {
      if (!chunk.is_hole(slot)) victims.push_back(pool.id_of(chunk.block_at(slot)));
    });
  }

 private:
  WindowSearch search_;
};

}  // namespace coop
