#pragma once

// Memory of the pool that PyTorch has and that no record stands for, by its address. Every tensor comes
// through here, so nothing is allocated for one: a table in which each place is looked for from where its
// address says, one place after the other.
//
// Of memory whose storage has been seen, that is known too: weakly, since it may have passed the memory on and be
// dead by now.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/StorageImpl.h>

#include "core/engine/engine.hpp"

namespace coop::plugin {

class RawBlocks {
 public:
  RawBlocks() = default;
  RawBlocks(const RawBlocks&) = delete;
  RawBlocks& operator=(const RawBlocks&) = delete;
  ~RawBlocks() {
    for (const Place& place : places_) {
      if (place.owner != nullptr) c10::raw::weak_intrusive_ptr::decref(place.owner);
    }
  }

  struct Owner {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const void* data = nullptr;
  };
  struct Claim {
    BlockId block;
    bool is_seen = false;       // its storage was, so it was not made just now
    bool has_outlived = false;  // a scope
  };

  // May throw, with nothing changed. The address is not there yet.
  void add(const void* data, BlockId block) {
    if (2 * (size_ + claimed_ + 1) > places_.size()) grow();
    put(data, block);
  }
  // None if it is not there.
  std::optional<BlockId> take(const void* data) noexcept {
    const auto at = place_of(data);
    if (!at) return std::nullopt;
    const BlockId block = places_[*at].block;
    empty_place(*at);
    return block;
  }

  // The same, and it stays there.
  [[nodiscard]] std::optional<BlockId> find(const void* data) const noexcept {
    const auto at = place_of(data);
    return at ? std::optional(places_[*at].block) : std::nullopt;
  }

  // The storage that has it, if it is there and nobody is known yet.
  void note_owner(const void* data, c10::StorageImpl& impl) noexcept {
    const auto at = place_of(data);
    if (!at || places_[*at].owner != nullptr) return;
    c10::raw::weak_intrusive_ptr::incref(&impl);
    places_[*at].owner = &impl;
  }
  // Of all those that are known.
  [[nodiscard]] std::vector<Owner> owners() const {
    std::vector<Owner> all;
    for (const Place& place : places_) {
      if (place.owner == nullptr) continue;
      c10::raw::weak_intrusive_ptr::incref(place.owner);
      all.push_back({.storage = c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(place.owner),
                     .data = place.data});
    }
    return all;
  }
  void a_scope_ends() noexcept {
    for (Place& place : places_) place.has_outlived = place.data != nullptr;
  }

  // As take() does, for whoever may still find that it must be put back: there is room for it until then.
  std::optional<Claim> claim(const void* data) noexcept {
    const auto at = place_of(data);
    if (!at) return std::nullopt;
    const Claim claim{.block = places_[*at].block,
                      .is_seen = places_[*at].owner != nullptr,
                      .has_outlived = places_[*at].has_outlived};
    empty_place(*at);
    ++claimed_;
    return claim;
  }
  // Room for one that is given back, though it was never here. May throw, with nothing changed.
  void reserve_claim() {
    if (2 * (size_ + claimed_ + 1) > places_.size()) grow();
    ++claimed_;
  }
  void give_back(const void* data, BlockId block) noexcept {
    --claimed_;
    put(data, block);
  }
  void settle_claim() noexcept { --claimed_; }

  // With those that are claimed.
  [[nodiscard]] std::size_t size() const { return size_ + claimed_; }

 private:
  struct Place {
    const void* data = nullptr;  // null: it is free
    BlockId block;
    bool has_outlived = false;
    c10::StorageImpl* owner = nullptr;  // held weakly
  };

  [[nodiscard]] std::optional<std::size_t> place_of(const void* data) const noexcept {
    if (places_.empty()) return std::nullopt;
    std::size_t at = home_of(data);
    while (places_[at].data != data) {
      if (places_[at].data == nullptr) return std::nullopt;
      at = next(at);
    }
    return at;
  }
  void put(const void* data, BlockId block) noexcept {
    places_[free_place_for(data)] = {.data = data, .block = block};
    ++size_;
  }
  void empty_place(std::size_t hole) noexcept {
    if (c10::StorageImpl* owner = std::exchange(places_[hole].owner, nullptr)) {
      c10::raw::weak_intrusive_ptr::decref(owner);
    }
    // Whoever would not be found across the hole moves into it.
    for (std::size_t at = next(hole); places_[at].data != nullptr; at = next(at)) {
      const std::size_t from_home = (at - home_of(places_[at].data)) & (places_.size() - 1);
      const std::size_t from_hole = (at - hole) & (places_.size() - 1);
      if (from_home < from_hole) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole] = {};
    --size_;
  }

  [[nodiscard]] std::size_t home_of(const void* data) const {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
    const std::uint64_t grain = reinterpret_cast<std::uintptr_t>(data) / kGrainBytes;
    return (grain * kGolden >> 32U) & (places_.size() - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (places_.size() - 1); }
  [[nodiscard]] std::size_t free_place_for(const void* data) const {
    std::size_t at = home_of(data);
    while (places_[at].data != nullptr) at = next(at);
    return at;
  }
  void grow() {
    constexpr std::size_t kLeast = 256;
    std::vector<Place> old(places_.empty() ? kLeast : 2 * places_.size());
    old.swap(places_);
    for (const Place& place : old) {
      if (place.data != nullptr) places_[free_place_for(place.data)] = place;
    }
  }

  std::vector<Place> places_;  // a power of two of them, half of them free at least
  std::size_t size_ = 0;
  std::size_t claimed_ = 0;
};

}  // namespace coop::plugin
