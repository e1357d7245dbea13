#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace coop {

// The name of a thing in a table: its place there, and how often that place was used before. Names are
// not reused: one of a thing that is gone is known to be stale. Tag keeps the names of different tables
// apart.
template <typename Tag>
class Handle {
 public:
  static constexpr std::uint32_t kNoIndex = 0xFFFFFFFF;

  constexpr Handle() = default;
  constexpr Handle(std::uint32_t index, std::uint32_t generation)
      : value_(std::uint64_t{generation} << 32U | index) {}

  [[nodiscard]] constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(value_); }
  [[nodiscard]] constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(value_ >> 32U);
  }
  // Whether it names anything at all, there or gone.
  explicit constexpr operator bool() const { return index() != kNoIndex; }
  friend constexpr bool operator==(Handle, Handle) = default;

 private:
  std::uint64_t value_ = kNoIndex;  // one word, which travels in a register
};

}  // namespace coop

template <typename Tag>
struct std::hash<coop::Handle<Tag>> {
  std::size_t operator()(coop::Handle<Tag> handle) const noexcept {
    return std::hash<std::uint64_t>()(std::uint64_t{handle.generation()} << 32U | handle.index());
  }
};
