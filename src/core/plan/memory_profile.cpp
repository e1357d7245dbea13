#include "core/plan/memory_profile.hpp"

#include <algorithm>
#include <bit>

namespace coop {
namespace {

using Stretch = MemoryProfile::Stretch;

// An empty one meets none.
bool meet(const Stretch& a, const Stretch& b) {
  return std::max(a.from, b.from) < std::min(a.end, b.end);
}
bool contains(const Stretch& a, const Stretch& b) { return a.from <= b.from && b.end <= a.end; }

Stretch left_half(const Stretch& stretch) {
  return {stretch.from, (stretch.from + stretch.end) / 2};
}
Stretch right_half(const Stretch& stretch) {
  return {(stretch.from + stretch.end) / 2, stretch.end};
}

}  // namespace

MemoryProfile::MemoryProfile(const std::vector<Bytes>& memory)
    : leaves_(std::bit_ceil(std::max<std::size_t>(1, memory.size()))), nodes_(2 * leaves_) {
  for (std::size_t i = 0; i < memory.size(); ++i) nodes_[leaves_ + i].most = memory[i];
  for (std::size_t node = leaves_ - 1; node > 0; --node) update(node);
}

Bytes MemoryProfile::most(const Stretch& stretch) const { return most(1, {0, leaves_}, stretch); }

void MemoryProfile::add(const Stretch& stretch, Bytes bytes) {
  change(1, {0, leaves_}, stretch, bytes, Change::kAdd);
}
void MemoryProfile::take(const Stretch& stretch, Bytes bytes) {
  change(1, {0, leaves_}, stretch, bytes, Change::kTake);
}

void MemoryProfile::update(std::size_t node) {
  nodes_[node].most =
      std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most) + nodes_[node].added;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree is high
void MemoryProfile::change(std::size_t node, const Stretch& of_node, const Stretch& stretch,
                           Bytes bytes, Change change) {
  if (!meet(of_node, stretch)) return;
  if (contains(stretch, of_node)) {
    const Bytes difference = change == Change::kAdd ? bytes : Bytes{0} - bytes;  // it wraps around
    nodes_[node].most += difference;
    nodes_[node].added += difference;
    return;
  }
  this->change(2 * node, left_half(of_node), stretch, bytes, change);
  this->change(2 * node + 1, right_half(of_node), stretch, bytes, change);
  update(node);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree is high
Bytes MemoryProfile::most(std::size_t node, const Stretch& of_node, const Stretch& stretch) const {
  if (!meet(of_node, stretch)) return 0;
  if (contains(stretch, of_node)) return nodes_[node].most;
  return std::max(most(2 * node, left_half(of_node), stretch),
                  most(2 * node + 1, right_half(of_node), stretch)) +
         nodes_[node].added;
}

}  // namespace coop
