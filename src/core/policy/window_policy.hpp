#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/policy/policy.hpp"
#include "core/policy/window_search.hpp"

namespace coop {

// Evicts the cheapest window at once.
template <Score S>
class WindowPolicy final : public Policy {
 public:
  // Whether what a window frees beyond the request counts in its favour.
  enum class Excess : std::uint8_t { kWasted, kCredited };
  explicit WindowPolicy(const PolicyTraits& traits, Excess excess = Excess::kWasted)
      : Policy(traits), excess_(excess) {}

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
      window = cheapest_window(order, grains, request.now, S{}, search_, limit, price_);
    }
    constexpr Grains kNoLimit = std::numeric_limits<Grains>::max();
    if (!window) {
      window = cheapest_window(order, grains, request.now, S{}, search_, kNoLimit, price_);
    }
    if (!window) return;
    if (excess_ == Excess::kCredited) note_price(*window);
    for_each_piece(order, window->extent, [&](const Chunk& chunk, int slot) {
      if (!chunk.is_hole(slot)) victims.push_back(pool.id_of(chunk.block_at(slot)));
    });
  }

 private:
  // A grain is worth what grains have cost lately. A window that is out of the ordinary (all that is left is
  // wanted by a replay) says little about the next.
  void note_price(const Window& window) {
    constexpr double kMostRise = 2;
    const double paid = window.cost / static_cast<double>(window.extent.size());
    price_ = price_ > 0 ? (price_ + std::min(paid, kMostRise * price_)) / 2 : paid;
  }

  WindowSearch search_;
  Excess excess_;
  double price_ = 0;  // of a grain
};

}  // namespace coop
